package testkit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	failures "github.com/pb33f/libopenapi-validator/errors"
	"github.com/pb33f/libopenapi-validator/paths"
	"github.com/pb33f/libopenapi-validator/schema_validation"
	"github.com/pb33f/libopenapi/datamodel/high/base"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
)

// Contract is an OpenAPI document that traffic is held against.
type Contract struct {
	model *v3.Document

	mu    sync.Mutex // protects check and lines, which are not made for goroutines
	check validator.Validator
	lines schema_validation.SchemaValidator
}

// NewContract reads a document, JSON or YAML. The error tells all that is wrong
// with it.
func NewContract(document []byte) (*Contract, error) {
	doc, err := libopenapi.NewDocument(document)
	if err != nil {
		return nil, fmt.Errorf("reading the document: %w", err)
	}
	check, errs := validator.NewValidator(doc, config.WithoutSecurityValidation())
	if len(errs) > 0 {
		return nil, fmt.Errorf("reading the document: %w", errors.Join(errs...))
	}
	if ok, bad := check.ValidateDocument(); !ok {
		return nil, fmt.Errorf("the document is not OpenAPI: %s", tell(bad))
	}
	model, err := doc.BuildV3Model()
	if err != nil {
		return nil, fmt.Errorf("building the document: %w", err)
	}
	return &Contract{model: &model.Model, check: check, lines: schema_validation.NewSchemaValidator()}, nil
}

// Transport gives a RoundTripper that fails t for every pair of request and
// answer that the document does not allow: an undocumented status or media type,
// a body of another shape, an error that is no problem or has an undocumented
// code, a request that was accepted although it is not documented so. Server-sent
// events and NDJSON are checked as they are read. base nil is the default one.
//
// A request with the header "X-Test-Undocumented" is not checked itself; the
// header is not sent. It is for the spellings that are accepted beside the
// documented ones.
func (c *Contract) Transport(t testing.TB, base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &checked{t: t, contract: c, base: base}
}

// CheckComponent holds a JSON text against one of the document's schemas.
func (c *Contract) CheckComponent(name string, text []byte) error {
	proxy := c.model.Components.Schemas.GetOrZero(name)
	if proxy == nil {
		return fmt.Errorf("the document has no schema %q", name)
	}
	return c.checkText(proxy.Schema(), text)
}

func (c *Contract) checkText(s *base.Schema, text []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok, bad := c.lines.ValidateSchemaBytes(s, text); !ok {
		return fmt.Errorf("%s: %s", text, tell(bad))
	}
	return nil
}

type checked struct {
	t        testing.TB
	contract *Contract
	base     http.RoundTripper
}

// RoundTrip sends the request and checks what went and came.
func (c *checked) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	_, undocumented := r.Header["X-Test-Undocumented"]
	r.Header.Del("X-Test-Undocumented")
	sent, err := drain(&r.Body)
	if err != nil {
		return nil, err
	}
	res, err := c.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(sent))
	what := fmt.Sprintf("%s %s: %d", r.Method, r.URL.RequestURI(), res.StatusCode)
	for _, problem := range c.contract.examine(r, res, undocumented, func(problem string) { c.t.Errorf("%s: %s", what, problem) }) {
		c.t.Errorf("%s: %s", what, problem)
	}
	return res, nil
}

// examine tells what is wrong with a pair; later is called for what is found in
// a stream while it is read.
func (c *Contract) examine(r *http.Request, res *http.Response, undocumented bool, later func(string)) []string {
	if res.Header.Get("X-Request-ID") == "" {
		return []string{"no X-Request-ID"}
	}
	operation := c.find(r)
	if operation == nil {
		if res.StatusCode >= http.StatusBadRequest {
			return c.examineProblem(res, nil)
		}
		return nil
	}
	documented := operation.Responses.Codes.GetOrZero(strconv.Itoa(res.StatusCode))
	if documented == nil {
		return []string{"the status is not documented"}
	}
	if r.Method == http.MethodHead || res.StatusCode == http.StatusPartialContent || res.Header.Get("Content-Encoding") != "" {
		return nil // There is no body to look at, or not all of it.
	}
	mediaType, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if streamed := mediaType == "text/event-stream" || mediaType == "application/x-ndjson"; streamed {
		media := documented.Content.GetOrZero(mediaType)
		if media == nil {
			return []string{"the media type is not documented: " + mediaType}
		}
		res.Body = &lineChecker{body: res.Body, events: mediaType == "text/event-stream", check: func(text []byte) {
			if err := c.checkText(media.Schema.Schema(), text); err != nil {
				later(err.Error())
			}
		}}
		return nil
	}
	found := c.examineBody(r, res)
	switch {
	case res.StatusCode >= http.StatusBadRequest:
		found = append(found, c.examineProblem(res, documented)...)
	case !undocumented:
		found = append(found, c.examineRequest(r)...)
	}
	return found
}

// find gives the operation of a request, nil for none.
func (c *Contract) find(r *http.Request) *v3.Operation {
	if strings.Contains(r.URL.Path, "//") {
		return nil // The library would take it for the path with one slash.
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	item, _, _ := paths.FindPath(r, c.model, nil)
	if item == nil {
		return nil
	}
	method := strings.ToLower(r.Method)
	if method == "head" {
		method = "get"
	}
	return item.GetOperations().GetOrZero(method)
}

func (c *Contract) examineBody(r *http.Request, res *http.Response) []string {
	if _, err := drain(&res.Body); err != nil {
		return []string{"the body broke off: " + err.Error()}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ok, bad := c.check.ValidateHttpResponse(r, res)
	if ok {
		return nil
	}
	return []string{tell(bad)}
}

func (c *Contract) examineRequest(r *http.Request) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	ok, bad := c.check.ValidateHttpRequest(r)
	if ok {
		return nil
	}
	return []string{"accepted, but not documented so: " + tell(bad)}
}

// examineProblem checks an error; documented is nil where there is no operation.
func (c *Contract) examineProblem(res *http.Response, documented *v3.Response) []string {
	text, err := drain(&res.Body)
	if err != nil {
		return []string{"the body broke off: " + err.Error()}
	}
	var problem struct {
		Status int    `json:"status"`
		Code   string `json:"code"`
	}
	if t := res.Header.Get("Content-Type"); t != "application/problem+json" || json.Unmarshal(text, &problem) != nil {
		return []string{fmt.Sprintf("an error that is no problem+json: %s %q", t, text)}
	}
	if problem.Status != res.StatusCode || problem.Code == "" {
		return []string{fmt.Sprintf("a problem of another status or without a code: %s", text)}
	}
	if documented == nil {
		return nil
	}
	var codes []string
	if node := documented.Extensions.GetOrZero("x-codes"); node == nil || node.Decode(&codes) != nil || !slices.Contains(codes, problem.Code) {
		return []string{fmt.Sprintf("the code %s is not documented for this status, only %v", problem.Code, codes)}
	}
	return nil
}

// drain reads a body and puts it back.
func drain(body *io.ReadCloser) ([]byte, error) {
	if *body == nil || *body == http.NoBody {
		return nil, nil
	}
	text, err := io.ReadAll(*body)
	_ = (*body).Close()
	*body = io.NopCloser(bytes.NewReader(text))
	return text, err
}

func tell(bad []*failures.ValidationError) string {
	var all []string
	for _, e := range bad {
		line := e.Message + ": " + e.Reason
		for _, s := range e.SchemaValidationErrors {
			line += "; " + s.KeywordLocation + " " + s.Reason
		}
		all = append(all, line)
	}
	return strings.Join(all, " | ")
}

// lineChecker passes a body on and checks each line of it that holds JSON.
type lineChecker struct {
	body   io.ReadCloser
	events bool
	check  func(text []byte)
	rest   []byte
}

func (l *lineChecker) Read(p []byte) (int, error) {
	n, err := l.body.Read(p)
	l.rest = append(l.rest, p[:n]...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return n, err
		}
		l.rest = rest
		text, data := bytes.CutPrefix(line, []byte("data:"))
		if text = bytes.TrimSpace(text); len(text) > 0 && data == l.events {
			l.check(text)
		}
	}
}

// Close closes the body.
func (l *lineChecker) Close() error { return l.body.Close() }
