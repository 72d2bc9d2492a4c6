// Package fs serves the files of one directory to clients: reading, browsing,
// searching names and contents, and changing them. Everything goes through env.Files, so nothing
// outside of the directory is ever opened.
package fs

import (
	"encoding/base64"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/store"
)

// Config says what a Service serves.
type Config struct {
	// Files are the files of the absolute directory Root. The Service closes them.
	Files env.Files
	Root  string
	// Store keeps the events of changes, which happen at Origin.
	Store  *store.DB
	Origin event.Origin
}

// Service reads and changes what is below one directory. It is safe for
// concurrent use.
type Service struct {
	files  env.Files
	root   string
	store  *store.DB
	origin event.Origin

	change sync.Mutex // one change at a time, so that conditions hold
}

// New makes a Service.
func New(c Config) *Service {
	return &Service{files: c.Files, root: c.Root, store: c.Store, origin: c.Origin}
}

// Close closes the files.
func (s *Service) Close() error { return s.files.Close() }

// PathName is a path as the API writes it. A name that is not UTF-8 has U+FFFD
// in Path and its exact bytes in PathBytes.
type PathName struct {
	Path      string `json:"path" doc:"Slash path relative to the directory."`
	PathBytes string `json:"pathBytes,omitempty" doc:"Base64 of the exact bytes, where they are not UTF-8."`
}

func nameOf(path string) PathName {
	if utf8.ValidString(path) {
		return PathName{Path: path}
	}
	return PathName{Path: readable(path), PathBytes: base64.StdEncoding.EncodeToString([]byte(path))}
}

// readable replaces each byte that is not UTF-8 with U+FFFD.
func readable(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	// Ranging over the text gives U+FFFD for such a byte.
	return string([]rune(text))
}

// clamp gives the limit of an answer: fallback when none is asked for, most when
// more is.
func clamp(limit, fallback, most int) int {
	if limit <= 0 {
		return fallback
	}
	return min(limit, most)
}

// In is a path as a client gives it: a text, or the base64 of its bytes.
type In struct{ Path, Bytes string }

// resolve gives the clean path relative to the directory.
func (s *Service) resolve(in In) (string, error) {
	path := in.Path
	if in.Bytes != "" {
		// Some clients spell base64 the way URLs need it.
		spelled := strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(in.Bytes), "=")
		data, err := base64.RawStdEncoding.DecodeString(spelled)
		if err != nil {
			return "", fault.New(fault.ValidationFailed, "pathBytes is not base64").At("query.pathBytes", "not base64")
		}
		path = string(data)
	}
	if path == "" {
		path = "."
	}
	return s.files.Rel(path)
}

// absolute gives the absolute path of a relative one.
func (s *Service) absolute(path string) string {
	if path == "." {
		return s.root
	}
	return strings.TrimSuffix(s.root, "/") + "/" + path
}
