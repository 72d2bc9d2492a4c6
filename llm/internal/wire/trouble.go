package wire

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// Trouble is a failure as a provider tells it, before it is sorted.
type Trouble struct {
	Status int    // HTTP status; 0 inside a stream
	Label  string // machine words: type and code
	Text   string // the sentence for people, as it came
	Header http.Header
}

// envelope covers the shapes in which providers report failures, as a body or
// as an event of a stream.
type envelope struct {
	Type     string          `json:"type"`
	Code     json.RawMessage `json:"code"`
	Message  string          `json:"message"`
	Detail   any             `json:"detail"`
	Error    json.RawMessage `json:"error"`
	Response struct {
		Error json.RawMessage `json:"error"`
	} `json:"response"`
}

// parseTrouble reads the body of a failed answer; one that is no JSON object
// tells nothing.
func parseTrouble(data []byte) Trouble {
	var outer envelope
	if json.Unmarshal(data, &outer) != nil {
		return Trouble{}
	}
	return outer.trouble()
}

// streamTrouble reads an event of a stream that began well. It reports false
// for events that tell no failure.
func streamTrouble(data []byte) (Trouble, bool) {
	var outer envelope
	if json.Unmarshal(data, &outer) != nil {
		return Trouble{}, false
	}
	if outer.Type != "error" && absent(outer.Error) && absent(outer.Response.Error) {
		return Trouble{}, false
	}
	return outer.trouble(), true
}

func absent(raw json.RawMessage) bool {
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}

// trouble finds the innermost error that the envelope holds.
func (e envelope) trouble() Trouble {
	inner := e
	for _, raw := range []json.RawMessage{e.Error, e.Response.Error} {
		var text string
		switch {
		case absent(raw):
			continue
		case json.Unmarshal(raw, &text) == nil:
			inner.Message = text
		default:
			inner = envelope{}
			_ = json.Unmarshal(raw, &inner)
		}
	}
	if text, ok := inner.Detail.(string); ok && inner.Message == "" {
		inner.Message = text
	}
	code := strings.Trim(string(inner.Code), `"`)
	t := Trouble{Label: strings.TrimSpace(inner.Type + " " + code), Text: inner.Message}
	if n, err := strconv.Atoi(code); err == nil && n >= 400 && n < 600 {
		t.Status = n
	}
	return t
}
