package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/op"
)

// dialTime bounds the wait for a connection.
const dialTime = 5 * time.Second

// problemLimit bounds how much of a failure's body is read, in bytes.
const problemLimit = 1 << 20

// Client calls operations of one server. It is safe for concurrent use.
type Client struct {
	base    string // without a slash at the end
	token   string
	program Program
	http    *http.Client
}

// NewClient makes a client of the server at base; token is "" for none.
func NewClient(p Program, base, token string) *Client {
	return &Client{
		base: strings.TrimSuffix(base, "/"), token: token, program: p,
		http: &http.Client{
			Transport: newTransport(),
			// A token is for the server that was named, wherever it points to.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: dialTime}).DialContext,
		ForceAttemptHTTP2: true, TLSHandshakeTimeout: dialTime, IdleConnTimeout: time.Minute,
	}
}

// describe finds an operation by its name.
func (c *Client) describe(name string) (op.Description, error) {
	for _, o := range c.program.Operations() {
		if d := o.Describe(); d.Name == name {
			return d, nil
		}
	}
	return op.Description{}, fmt.Errorf("this program has no operation %s", name)
}

// send sends a request. An answer with another status than 2xx is an error: a
// *problem with the code of a failure. The caller closes the body.
func (c *Client) send(req *http.Request) (*http.Response, error) {
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	req.Header.Set("User-Agent", "switchyard/"+c.program.Version)
	res, err := c.http.Do(req)
	if err != nil {
		var wrapped *url.Error // repeats method and address
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, ended(req.Context(), c.base, err)
	}
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		return res, nil
	}
	defer res.Body.Close()
	return nil, &Exit{Code: ExitFailed, Err: readProblem(res)}
}

// Base is the address of the server.
func (c *Client) Base() string { return c.base }

// Do calls an operation by its description and gives the answer, whose status is
// a 2xx: a failure is an error that CodeOf knows, with the code of the exit. The
// caller closes the body.
func (c *Client) Do(ctx context.Context, d op.Description, a Arguments) (*http.Response, error) {
	req, err := newRequest(ctx, c.base, d, a)
	if err != nil {
		return nil, err
	}
	return c.send(req)
}

// Open is Do for an operation that is known by its name.
func (c *Client) Open(ctx context.Context, name string, a Arguments) (*http.Response, error) {
	d, err := c.describe(name)
	if err != nil {
		return nil, err
	}
	return c.Do(ctx, d, a)
}

// Call calls an operation and reads the data of its answer; into may be nil.
func (c *Client) Call(ctx context.Context, name string, a Arguments, into any) error {
	res, err := c.Open(ctx, name, a)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return ended(ctx, c.base, err)
	}
	if into == nil {
		return nil
	}
	envelope := struct {
		Data any `json:"data"`
	}{Data: into}
	if err := json.Unmarshal(data, &envelope); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", name, err)
	}
	return nil
}

// problem is a failure that the server told, or an answer that is none of ours.
type problem struct {
	op.Problem
	hint string
}

// Error gives the code and the detail, and one line for each wrong place.
func (p *problem) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", p.Code, p.Detail)
	for _, item := range p.Errors {
		fmt.Fprintf(&b, "\n  %s: %s", item.Location, item.Message)
	}
	if p.Reference != "" {
		fmt.Fprintf(&b, "\n  reference: %s", p.Reference)
	}
	if p.hint != "" {
		b.WriteString("\n  " + p.hint)
	}
	return b.String()
}

// temporary reports whether the same call may work a little later.
func (p *problem) temporary() bool {
	return p.Status >= http.StatusInternalServerError || p.Status == http.StatusTooManyRequests
}

func readProblem(res *http.Response) *problem {
	p := &problem{}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	data, err := io.ReadAll(io.LimitReader(res.Body, problemLimit))
	if err != nil || kind != op.ProblemType || json.Unmarshal(data, &p.Problem) != nil || p.Code == "" {
		p.Problem = op.Problem{
			Code: "not_switchyard", Detail: fmt.Sprintf("%s does not answer as a Switchyard server: %s", res.Request.URL.Host, res.Status),
		}
	}
	p.Status = res.StatusCode
	switch p.Code {
	case fault.Unauthorized:
		p.hint = "give the server's token by --token-file or SWITCHYARD_TOKEN"
	case fault.HostNotAllowed:
		p.hint = "the server allows further names with: switchyard serve --allow-host NAME"
	}
	return p
}

// CodeOf gives the code of a failure that the server told, "" for other errors.
func CodeOf(err error) fault.Code {
	var p *problem
	if errors.As(err, &p) {
		return p.Code
	}
	return ""
}
