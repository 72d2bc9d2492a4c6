package fs

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/switchyard-dev/switchyard/env"
)

// sniff is how much of a file decides whether it is text, in bytes.
const sniff = 8 << 10

// peek gives the beginning of a file and leaves it at its start.
func peek(f env.File) ([]byte, error) {
	head := make([]byte, sniff)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return head[:n], nil
}

// isText: no NUL and valid UTF-8, as far as the beginning tells. A character
// that the end of a full peek cuts is no sign of anything.
func isText(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	if len(head) == sniff {
		head = head[:lastWhole(head)]
	}
	return utf8.Valid(head)
}

// lastWhole gives the length of data without a character that is cut at its end.
func lastWhole(data []byte) int {
	for i := len(data) - 1; i >= max(0, len(data)-utf8.UTFMax); i-- {
		if utf8.RuneStart(data[i]) {
			if utf8.FullRune(data[i:]) {
				return len(data)
			}
			return i
		}
	}
	return len(data)
}

// runeStart gives the beginning of the character that data[at] is in.
func runeStart(data []byte, at int) int {
	for i := at; i >= max(0, at-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(data[i]) {
			return i
		}
	}
	return at // no UTF-8: there is nothing to keep whole
}

// types are the media types of names by their extension. The system's table is
// not asked: it differs between machines, and for some (".ts") it is misleading
// on all of them.
var types = map[string]string{
	".bash": "text/x-shellscript", ".c": "text/x-c", ".cpp": "text/x-c++", ".cs": "text/x-csharp", ".css": "text/css",
	".csv": "text/csv", ".diff": "text/x-diff", ".go": "text/x-go", ".h": "text/x-c", ".hpp": "text/x-c++",
	".htm": "text/html", ".html": "text/html", ".java": "text/x-java", ".js": "text/javascript", ".json": "application/json",
	".jsonc": "application/json", ".jsx": "text/javascript", ".kt": "text/x-kotlin", ".lua": "text/x-lua", ".md": "text/markdown",
	".mjs": "text/javascript", ".cjs": "text/javascript", ".patch": "text/x-diff", ".php": "text/x-php", ".py": "text/x-python",
	".rb": "text/x-ruby", ".rs": "text/x-rust", ".sh": "text/x-shellscript", ".sql": "application/sql", ".svg": "image/svg+xml",
	".swift": "text/x-swift", ".toml": "application/toml", ".ts": "text/x-typescript", ".tsx": "text/x-typescript",
	".xml": "application/xml", ".yaml": "application/yaml", ".yml": "application/yaml",

	".avif": "image/avif", ".bz2": "application/x-bzip2", ".ico": "image/x-icon", ".jar": "application/java-archive",
	".mov": "video/quicktime", ".tar": "application/x-tar", ".woff": "font/woff", ".woff2": "font/woff2",
	".xz": "application/x-xz", ".zst": "application/zstd",
}

// mimeOf gives the media type of a file: for text its name tells most, for
// anything else its beginning does.
func mimeOf(name string, head []byte) string {
	named := types[strings.ToLower(path.Ext(name))]
	sniffed := http.DetectContentType(head)
	if isText(head) {
		if named == "" || !isTextual(named) {
			return sniffed
		}
		return mime.FormatMediaType(named, map[string]string{"charset": "utf-8"})
	}
	if sniffed == "application/octet-stream" && named != "" && !isTextual(named) {
		return named
	}
	return sniffed
}

// isTextual reports whether a type of the table is for text.
func isTextual(media string) bool {
	switch media {
	case "application/json", "application/sql", "application/toml", "application/xml", "application/yaml", "image/svg+xml":
		return true
	}
	return strings.HasPrefix(media, "text/")
}
