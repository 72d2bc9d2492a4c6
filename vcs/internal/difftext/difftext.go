// Package difftext reads what git diff prints, and writes what it would print of
// untracked files. It starts nothing and knows nothing of repositories.
package difftext

import (
	"bytes"
	"encoding/base64"
	"unicode/utf8"
)

// FileDiff is a changed file with its changed lines.
type FileDiff struct {
	File         string `json:"file" doc:"Relative to the directory; may begin with ../."`
	FileBytes    string `json:"fileBytes,omitempty" doc:"Base64 of the exact bytes, where they are not UTF-8."`
	OldFile      string `json:"oldFile,omitempty" doc:"Where a renamed file was."`
	OldFileBytes string `json:"oldFileBytes,omitempty"`
	Status       string `json:"status" enum:"added,modified,deleted,renamed"`
	Additions    int    `json:"additions" doc:"Lines; 0 for binary files."`
	Deletions    int    `json:"deletions"`
	Binary       bool   `json:"binary,omitempty"`
	OldMode      string `json:"oldMode,omitempty" doc:"As git writes modes; given where the mode changed."`
	NewMode      string `json:"newMode,omitempty"`
	Hunks        []Hunk `json:"hunks,omitempty"`
	Truncated    bool   `json:"truncated,omitempty" doc:"Lines are left out: the file, or all before it, is too large. The counts are whole."`

	// Path is relative to the work tree's top, exact bytes.
	Path string `json:"-"`
}

// Hunk is a run of lines in which something changed.
type Hunk struct {
	OldStart int      `json:"oldStart"`
	OldLines int      `json:"oldLines"`
	NewStart int      `json:"newStart"`
	NewLines int      `json:"newLines"`
	Section  string   `json:"section,omitempty" doc:"What git shows after the numbers: the function around."`
	Lines    []string `json:"lines" doc:"Each begins with a space, + or -; a \\ begins a note on the line before. Bytes that are not UTF-8 are U+FFFD."`
}

// NoNewline is the note on a last line without its break.
const NoNewline = `\ No newline at end of file`

// Readable gives a path as JSON can hold it, and its bytes in base64 where that
// is not the same.
func Readable(path string) (text, exact string) {
	if utf8.ValidString(path) {
		return path, ""
	}
	return string([]rune(path)), base64.StdEncoding.EncodeToString([]byte(path))
}

// Text gives a line as JSON can hold it.
func Text(line []byte) string {
	if utf8.Valid(line) {
		return string(line)
	}
	return string([]rune(string(line)))
}

// IsBinary tells what git calls binary: there is a zero byte near the start.
func IsBinary(data []byte) bool { return bytes.IndexByte(data[:min(len(data), binaryHead)], 0) >= 0 }
