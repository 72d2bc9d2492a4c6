package llmtest

import "strconv"

// chatWire speaks OpenAI chat completions.
type chatWire struct {
	*player
	id    string
	calls int
}

func (w *chatWire) chunk(delta object, finish any) {
	w.event("", object{
		"id": w.id, "object": "chat.completion.chunk", "created": created(), "model": w.req.Model,
		"choices": []object{{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}},
	})
}

func (w *chatWire) open() { w.chunk(object{"role": "assistant", "content": ""}, nil) }

func (w *chatWire) step(s Step) {
	switch s.kind {
	case stepText:
		for piece := range w.chunks(s.text) {
			w.chunk(object{"content": piece}, nil)
		}
	case stepReasoning:
		for piece := range w.chunks(s.text) {
			w.chunk(object{"reasoning_content": piece}, nil)
		}
	case stepCall:
		w.call(s)
	}
}

func (w *chatWire) call(s Step) {
	index := w.calls
	w.calls++
	w.chunk(object{"tool_calls": []object{{
		"index": index, "id": s.id, "type": "function", "function": object{"name": s.name, "arguments": ""},
	}}}, nil)
	for piece := range w.chunks(s.text) {
		w.chunk(object{"tool_calls": []object{{"index": index, "function": object{"arguments": piece}}}}, nil)
	}
}

func (w *chatWire) close(finish string, u Usage) {
	w.chunk(object{}, chatReason(finish))
	if w.req.includeUsage {
		w.event("", object{
			"id": w.id, "object": "chat.completion.chunk", "created": created(), "model": w.req.Model,
			"choices": []object{}, "usage": chatUsage(u),
		})
	}
	w.frame("", "[DONE]")
}

func (w *chatWire) fail(errorType, message string) {
	w.event("", errorBody(Chat, errorType, "", message))
}

func (w *chatWire) whole(t Turn) any {
	message := object{"role": "assistant", "content": "", "refusal": nil}
	var calls []object
	for _, s := range t.Steps {
		switch s.kind {
		case stepText:
			message["content"] = message["content"].(string) + s.text
		case stepReasoning:
			message["reasoning_content"] = s.text
		case stepCall:
			id := s.id
			if id == "" {
				id = "call_" + strconv.Itoa(w.srv.number())
			}
			calls = append(calls, object{
				"id": id, "type": "function", "function": object{"name": s.name, "arguments": s.text},
			})
		}
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return object{
		"id": w.id, "object": "chat.completion", "created": created(), "model": w.req.Model,
		"choices": []object{{"index": 0, "message": message, "logprobs": nil, "finish_reason": chatReason(t.finish())}},
		"usage":   chatUsage(t.usage()),
	}
}

func chatReason(finish string) string {
	switch finish {
	case "tool-calls":
		return "tool_calls"
	case "content-filter":
		return "content_filter"
	}
	return finish
}

// chatUsage counts as OpenAI does: cached tokens within the prompt's, reasoning
// within the completion's.
func chatUsage(u Usage) object {
	prompt, completion := u.Input+u.CacheRead, u.Output+u.Reasoning
	return object{
		"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
		"prompt_tokens_details":     object{"cached_tokens": u.CacheRead},
		"completion_tokens_details": object{"reasoning_tokens": u.Reasoning},
	}
}
