package api

import (
	"compress/gzip"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/switchyard-dev/switchyard/op"
)

// compressFrom is the length in bytes from which gzip pays.
const compressFrom = 1024

// compress sends large answers of text as gzip to those who take it. It looks
// at answers whose length is announced only: these are whole, while a stream
// must go out as it is written.
func compress(next http.Handler) http.Handler {
	pool := &sync.Pool{New: func() any {
		z, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // The level exists.
		return z
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &compressor{ResponseWriter: w, pool: pool}
		c.wanted = r.Method != http.MethodHead && takesGzip(r.Header.Get("Accept-Encoding"))
		defer c.close()
		next.ServeHTTP(c, r)
	})
}

func takesGzip(accept string) bool {
	if op.Accepts(accept, "gzip") {
		return true
	}
	// "*" stands for the codings that are not named.
	return op.Accepts(accept, "*") && !strings.Contains(strings.ToLower(accept), "gzip")
}

// compressor decides when the header is written.
type compressor struct {
	http.ResponseWriter
	pool   *sync.Pool
	gzip   *gzip.Writer
	wanted bool
	begun  bool
}

// Unwrap is for http.ResponseController.
func (c *compressor) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// WriteHeader begins the answer.
func (c *compressor) WriteHeader(status int) {
	if !c.begun && status >= http.StatusOK {
		c.begun = true
		c.decide(status)
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *compressor) decide(status int) {
	h := c.Header()
	if !compressible(h.Get("Content-Type")) {
		return
	}
	h.Add("Vary", "Accept-Encoding")
	length, err := strconv.Atoi(h.Get("Content-Length"))
	if err != nil || !c.wanted || length < compressFrom || status == http.StatusPartialContent || h.Get("Content-Encoding") != "" {
		return
	}
	// A strong ETag promises these very bytes.
	if tag := h.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		return
	}
	h.Del("Content-Length")
	h.Set("Content-Encoding", "gzip")
	c.gzip, _ = c.pool.Get().(*gzip.Writer)
	c.gzip.Reset(c.ResponseWriter)
}

// Write adds to the body.
func (c *compressor) Write(p []byte) (int, error) {
	if !c.begun {
		c.WriteHeader(http.StatusOK)
	}
	if c.gzip != nil {
		return c.gzip.Write(p)
	}
	return c.ResponseWriter.Write(p)
}

// ReadFrom lets the connection take a file without copying it.
func (c *compressor) ReadFrom(r io.Reader) (int64, error) {
	if !c.begun {
		c.WriteHeader(http.StatusOK)
	}
	if c.gzip != nil {
		return io.Copy(c.gzip, r)
	}
	return io.Copy(c.ResponseWriter, r)
}

// FlushError sends what was written.
func (c *compressor) FlushError() error {
	if !c.begun {
		c.WriteHeader(http.StatusOK)
	}
	if c.gzip != nil {
		if err := c.gzip.Flush(); err != nil {
			return err
		}
	}
	return http.NewResponseController(c.ResponseWriter).Flush()
}

func (c *compressor) close() {
	if c.gzip != nil {
		_ = c.gzip.Close() // The client may be gone: nobody is left to tell.
		c.pool.Put(c.gzip)
	}
}

func compressible(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	switch t {
	case op.TypeJSON, op.ProblemType, typeYAML, typeScript, "text/html", "text/css", "text/plain":
		return true
	}
	return false
}
