package wire

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Edits are changes to the request body that the library below cannot make: it
// leaves sealed reasoning out of the history of the responses dialect, and drops
// most of a tool's schema for Anthropic.
type Edits struct {
	// Members replace top-level members of the body.
	Members map[string]any

	// mark begins the text of the messages in "input" that stand for an item of
	// items; what follows is the item's number.
	mark  string
	items []ReasoningItem
}

// ReasoningItem is reasoning as the responses dialect takes it back.
type ReasoningItem struct {
	Type    string        `json:"type"`
	ID      string        `json:"id"`
	Summary []SummaryText `json:"summary"`
	Sealed  string        `json:"encrypted_content"`
}

// SummaryText is one paragraph of a summary.
type SummaryText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// Place notes an item and gives the text of the message that stands for it.
func (e *Edits) Place(item ReasoningItem) string {
	if e.mark == "" {
		e.mark = "reasoning " + rand.Text() + " "
	}
	e.items = append(e.items, item)
	return fmt.Sprint(e.mark, len(e.items)-1)
}

// apply changes the body of req.
func (e *Edits) apply(req *http.Request) error {
	if len(e.Members) == 0 && len(e.items) == 0 {
		return nil
	}
	data, err := readBody(req)
	if err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	body := map[string]any{}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	for k, v := range raw {
		body[k] = v
	}
	if len(e.items) > 0 {
		if body["input"], err = e.restore(raw["input"]); err != nil {
			return err
		}
	}
	for k, v := range e.Members {
		body[k] = v
	}
	if data, err = json.Marshal(body); err != nil {
		return fmt.Errorf("writing the request: %w", err)
	}
	setBody(req, data)
	return nil
}

// restore puts the items where their stand-ins are.
func (e *Edits) restore(input json.RawMessage) ([]any, error) {
	var messages []json.RawMessage
	if err := json.Unmarshal(input, &messages); err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	out := make([]any, len(messages))
	for i, m := range messages {
		out[i] = m
		var text struct {
			Content any `json:"content"`
		}
		if json.Unmarshal(m, &text) != nil {
			continue
		}
		content, _ := text.Content.(string)
		number, ok := strings.CutPrefix(content, e.mark)
		if !ok {
			continue
		}
		var n int
		if _, err := fmt.Sscan(number, &n); err == nil && n < len(e.items) {
			out[i] = e.items[n]
		}
	}
	return out, nil
}
