package api

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/op/openapi"
)

const (
	typeYAML   = "application/yaml"
	typeScript = "text/javascript"
)

//go:embed docs/index.html docs/page.css docs/rapidoc-min.js docs/LICENSE.txt
var assets embed.FS

// policy lets the reference page load nothing but what this server has. Its
// component writes style elements and shows images of the document only.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// file is something served whole, with an ETag over its content.
type file struct {
	content   []byte
	tag       string
	mediaType string
}

func newFile(mediaType string, content []byte) *file {
	sum := sha256.Sum256(content)
	return &file{content: content, mediaType: mediaType, tag: `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("ETag", f.tag)
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	if op.ETagMatches(r.Header.Get("If-None-Match"), f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", f.mediaType)
	h.Set("Content-Length", strconv.Itoa(len(f.content)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(f.content) // The client may be gone: nobody is left to tell.
}

// page is the reference page. Nothing of it is read before it is asked for.
type page struct {
	files map[string]func() *file
}

func newPage() *page {
	p := &page{files: map[string]func() *file{}}
	for name, asset := range map[string]struct{ path, mediaType string }{
		"":                {"docs/index.html", "text/html; charset=utf-8"},
		"/page.css":       {"docs/page.css", "text/css; charset=utf-8"},
		"/rapidoc-min.js": {"docs/rapidoc-min.js", typeScript + "; charset=utf-8"},
		"/LICENSE.txt":    {"docs/LICENSE.txt", "text/plain; charset=utf-8"},
	} {
		p.files["/api/docs"+name] = sync.OnceValue(func() *file {
			content, err := assets.ReadFile(asset.path)
			if err != nil { // It was embedded.
				panic(err)
			}
			return newFile(asset.mediaType, content)
		})
	}
	return p
}

func (p *page) paths() []string { return slices.Sorted(maps.Keys(p.files)) }

func (p *page) serve(w http.ResponseWriter, r *http.Request) { p.files[r.URL.Path]().serve(w, r) }

// documents are the two forms of the OpenAPI document, made at their first use.
type documents struct {
	json, yaml func() (*file, error)
}

func newDocuments(c Config) *documents {
	document := sync.OnceValue(func() *openapi.Document {
		d := c.Document
		d.Operations, d.BasePath = c.Operations, cleanBase(c.BasePath)
		return openapi.New(d)
	})
	render := func(mediaType string, text func(*openapi.Document) ([]byte, error)) func() (*file, error) {
		return sync.OnceValues(func() (*file, error) {
			content, err := text(document())
			if err != nil {
				return nil, err
			}
			return newFile(mediaType, content), nil
		})
	}
	return &documents{
		json: render(op.TypeJSON, (*openapi.Document).JSON),
		yaml: render(typeYAML, (*openapi.Document).YAML),
	}
}

func (d *documents) serveJSON(w http.ResponseWriter, r *http.Request) { serveFile(w, r, d.json) }

func (d *documents) serveYAML(w http.ResponseWriter, r *http.Request) { serveFile(w, r, d.yaml) }

func serveFile(w http.ResponseWriter, r *http.Request, get func() (*file, error)) {
	f, err := get()
	if err != nil {
		op.WriteProblem(w, r, err)
		return
	}
	f.serve(w, r)
}
