package llmtest

import (
	"encoding/json"
	"strconv"
)

// anthropicWire speaks Anthropic messages.
type anthropicWire struct {
	*player
	id    string
	index int
}

func (w *anthropicWire) send(kind string, more object) {
	more["type"] = kind
	w.event(kind, more)
}

func (w *anthropicWire) open() {
	u := w.turn.usage()
	w.send("message_start", object{"message": object{
		"id": w.id, "type": "message", "role": "assistant", "model": w.req.Model, "content": []object{},
		"stop_reason": nil, "stop_sequence": nil,
		"usage": object{
			"input_tokens": u.Input, "output_tokens": 1,
			"cache_creation_input_tokens": u.CacheWrite, "cache_read_input_tokens": u.CacheRead,
		},
	}})
	w.send("ping", object{})
}

func (w *anthropicWire) delta(delta object) {
	w.send("content_block_delta", object{"index": w.index, "delta": delta})
}

func (w *anthropicWire) step(s Step) {
	switch s.kind {
	case stepText:
		w.start(object{"type": "text", "text": ""})
		for piece := range w.chunks(s.text) {
			w.delta(object{"type": "text_delta", "text": piece})
		}
	case stepReasoning:
		w.think(s)
	case stepCall:
		w.start(object{"type": "tool_use", "id": s.id, "name": s.name, "input": object{}})
		w.delta(object{"type": "input_json_delta", "partial_json": ""})
		for piece := range w.chunks(s.text) {
			w.delta(object{"type": "input_json_delta", "partial_json": piece})
		}
	}
	if !s.open {
		w.send("content_block_stop", object{"index": w.index})
		w.index++
	}
}

// think sends reasoning; without text it is redacted.
func (w *anthropicWire) think(s Step) {
	if s.text == "" {
		w.start(object{"type": "redacted_thinking", "data": s.signature})
		return
	}
	w.start(object{"type": "thinking", "thinking": "", "signature": ""})
	for piece := range w.chunks(s.text) {
		w.delta(object{"type": "thinking_delta", "thinking": piece})
	}
	w.delta(object{"type": "signature_delta", "signature": s.signature})
}

func (w *anthropicWire) start(block object) {
	w.send("content_block_start", object{"index": w.index, "content_block": block})
}

func (w *anthropicWire) close(finish string, u Usage) {
	w.send("message_delta", object{
		"delta": object{"stop_reason": anthropicReason(finish), "stop_sequence": nil},
		"usage": object{"output_tokens": u.Output + u.Reasoning},
	})
	w.send("message_stop", object{})
}

func (w *anthropicWire) fail(errorType, message string) {
	w.event("error", errorBody(Anthropic, errorType, "", message))
}

func (w *anthropicWire) whole(t Turn) any {
	blocks := []object{}
	for _, s := range t.Steps {
		switch s.kind {
		case stepText:
			blocks = append(blocks, object{"type": "text", "text": s.text})
		case stepReasoning:
			blocks = append(blocks, object{"type": "thinking", "thinking": s.text, "signature": s.signature})
		case stepCall:
			id := s.id
			if id == "" {
				id = "call_" + strconv.Itoa(w.srv.number())
			}
			blocks = append(blocks, object{"type": "tool_use", "id": id, "name": s.name, "input": json.RawMessage(s.text)})
		}
	}
	u := t.usage()
	return object{
		"id": w.id, "type": "message", "role": "assistant", "model": w.req.Model, "content": blocks,
		"stop_reason": anthropicReason(t.finish()), "stop_sequence": nil,
		"usage": object{
			"input_tokens": u.Input, "output_tokens": u.Output + u.Reasoning,
			"cache_creation_input_tokens": u.CacheWrite, "cache_read_input_tokens": u.CacheRead,
		},
	}
}

func anthropicReason(finish string) string {
	switch finish {
	case "tool-calls":
		return "tool_use"
	case "length":
		return "max_tokens"
	case "content-filter":
		return "refusal"
	case "stop":
		return "end_turn"
	}
	return finish
}
