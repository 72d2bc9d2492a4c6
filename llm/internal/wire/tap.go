package wire

import (
	"bytes"
	"encoding/json"
)

// Tap watches the lines of a provider's event stream as they pass to the
// library that decodes them, for what the library does not tell: the raw finish
// reason (it takes a cut tool call for a finished one), failures in their own
// words, the final form of sealed reasoning, and where the stream logically
// ends (it reads on until the connection does).
type Tap struct {
	rest []byte // an unfinished line

	// Finish is the raw finish or stop reason, "" before it comes. In the
	// responses dialect only incomplete answers have one.
	Finish string
	// Trouble is a failure told inside the stream.
	Trouble *Trouble
	// Sealed holds encrypted reasoning by item id.
	Sealed map[string]string

	final bool // the last event's line has passed
	done  bool // and the blank line after it
}

// maxLine bounds what is kept of an unfinished line; the decoder's own limit is
// of the same order.
const maxLine = 32 << 20

func (t *Tap) feed(p []byte) {
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			break
		}
		line := p[:i]
		if len(t.rest) > 0 {
			line = append(t.rest, line...)
			t.rest = t.rest[:0]
		}
		t.line(bytes.TrimSuffix(line, []byte("\r")))
		p = p[i+1:]
	}
	if len(t.rest)+len(p) <= maxLine {
		t.rest = append(t.rest, p...)
	}
}

func (t *Tap) line(b []byte) {
	if len(b) == 0 {
		t.done = t.final
		return
	}
	name, value, _ := bytes.Cut(b, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		switch string(value) {
		case "message_stop", "response.completed", "response.incomplete":
			t.final = true
		}
	case "data":
		t.data(value)
	}
}

func (t *Tap) data(b []byte) {
	if bytes.Equal(b, []byte("[DONE]")) {
		t.final = true
		return
	}
	// A quotation mark inside a JSON string is escaped, so these searches find
	// members only.
	for _, key := range [...]string{`"finish_reason"`, `"stop_reason"`} {
		if v := stringAfter(b, key); v != "" {
			t.Finish = v
		}
	}
	if bytes.Contains(b, []byte(`"error"`)) {
		if found, ok := streamTrouble(b); ok {
			t.Trouble = &found
		}
	}
	switch {
	case bytes.Contains(b, []byte(`"response.output_item.done"`)):
		t.item(b)
	case bytes.Contains(b, []byte(`"response.incomplete"`)):
		t.incomplete(b)
	}
}

// incomplete keeps why an answer is not whole; the library forgets it when the
// answer holds a call.
func (t *Tap) incomplete(b []byte) {
	var event struct {
		Response struct {
			Details struct {
				Reason string `json:"reason"`
			} `json:"incomplete_details"`
		} `json:"response"`
	}
	if json.Unmarshal(b, &event) == nil {
		t.Finish = event.Response.Details.Reason
	}
}

// item keeps the final encrypted content of a reasoning item; what the item had
// when it was added is not what the provider wants back.
func (t *Tap) item(b []byte) {
	var event struct {
		Item struct {
			ID     string `json:"id"`
			Type   string `json:"type"`
			Sealed string `json:"encrypted_content"`
		} `json:"item"`
	}
	if json.Unmarshal(b, &event) != nil || event.Item.Type != "reasoning" || event.Item.Sealed == "" {
		return
	}
	if t.Sealed == nil {
		t.Sealed = map[string]string{}
	}
	t.Sealed[event.Item.ID] = event.Item.Sealed
}

// stringAfter gives the string value of the first member called key ("" when
// there is none or it is no string).
func stringAfter(b []byte, key string) string {
	_, rest, ok := bytes.Cut(b, []byte(key))
	if !ok {
		return ""
	}
	rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, " "), []byte(":"))
	if !ok {
		return ""
	}
	rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, " "), []byte(`"`))
	if !ok {
		return ""
	}
	value, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(value)
}
