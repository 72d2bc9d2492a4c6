package llmtest

import "fmt"

// responsesWire speaks OpenAI responses.
type responsesWire struct {
	*player
	id     int
	serial int // of events
	items  []object
}

func (w *responsesWire) send(kind string, more object) {
	more["type"] = kind
	more["sequence_number"] = w.serial
	w.serial++
	w.event(kind, more)
}

// response gives the object that the first and last events hold.
func (w *responsesWire) response(status string, more object) object {
	out := object{
		"id": fmt.Sprintf("resp_%d", w.id), "object": "response", "created_at": created(), "model": w.req.Model,
		"status": status, "error": nil, "incomplete_details": nil, "output": []object{}, "usage": nil,
	}
	for k, v := range more {
		out[k] = v
	}
	return out
}

func (w *responsesWire) open() {
	w.send("response.created", object{"response": w.response("in_progress", nil)})
	w.send("response.in_progress", object{"response": w.response("in_progress", nil)})
}

// itemID gives the id of the item being played.
func (w *responsesWire) itemID(prefix string) string {
	return fmt.Sprintf("%s_%d_%d", prefix, w.id, len(w.items))
}

func (w *responsesWire) add(item object) {
	w.send("response.output_item.added", object{"output_index": len(w.items), "item": item})
}

func (w *responsesWire) done(item object) {
	w.send("response.output_item.done", object{"output_index": len(w.items), "item": item})
	w.items = append(w.items, item)
}

func (w *responsesWire) step(s Step) {
	switch s.kind {
	case stepText:
		w.text(s)
	case stepReasoning:
		w.think(s)
	case stepCall:
		w.call(s)
	}
}

func (w *responsesWire) text(s Step) {
	id, at := w.itemID("msg"), len(w.items)
	w.add(object{"id": id, "type": "message", "status": "in_progress", "role": "assistant", "content": []object{}})
	place := func(more object) object {
		more["item_id"], more["output_index"], more["content_index"] = id, at, 0
		return more
	}
	part := func(text string) object {
		return object{"type": "output_text", "text": text, "annotations": []object{}, "logprobs": []object{}}
	}
	w.send("response.content_part.added", place(object{"part": part("")}))
	for piece := range w.chunks(s.text) {
		w.send("response.output_text.delta", place(object{"delta": piece, "logprobs": []object{}}))
	}
	w.send("response.output_text.done", place(object{"text": s.text, "logprobs": []object{}}))
	w.send("response.content_part.done", place(object{"part": part(s.text)}))
	w.done(textItem(id, s.text))
}

func textItem(id, text string) object {
	return object{
		"id": id, "type": "message", "status": "completed", "role": "assistant",
		"content": []object{{"type": "output_text", "text": text, "annotations": []object{}}},
	}
}

// think sends reasoning. As with the real one, the encrypted content that comes
// first is not the final one.
func (w *responsesWire) think(s Step) {
	id, at := w.itemID("rs"), len(w.items)
	w.add(object{"id": id, "type": "reasoning", "summary": []object{}, "encrypted_content": "early " + s.signature})
	place := func(more object) object {
		more["item_id"], more["output_index"], more["summary_index"] = id, at, 0
		return more
	}
	summary := []object{}
	if s.text != "" {
		w.send("response.reasoning_summary_part.added", place(object{"part": object{"type": "summary_text", "text": ""}}))
		for piece := range w.chunks(s.text) {
			w.send("response.reasoning_summary_text.delta", place(object{"delta": piece}))
		}
		w.send("response.reasoning_summary_text.done", place(object{"text": s.text}))
		summary = append(summary, object{"type": "summary_text", "text": s.text})
		w.send("response.reasoning_summary_part.done", place(object{"part": summary[0]}))
	}
	w.done(object{"id": id, "type": "reasoning", "summary": summary, "encrypted_content": s.signature})
}

func (w *responsesWire) call(s Step) {
	id, at := w.itemID("fc"), len(w.items)
	item := callItem(id, s)
	item["status"], item["arguments"] = "in_progress", ""
	w.add(item)
	for piece := range w.chunks(s.text) {
		w.send("response.function_call_arguments.delta", object{"item_id": id, "output_index": at, "delta": piece})
	}
	if s.open {
		return
	}
	w.send("response.function_call_arguments.done", object{"item_id": id, "output_index": at, "arguments": s.text})
	w.done(callItem(id, s))
}

func callItem(id string, s Step) object {
	return object{
		"id": id, "type": "function_call", "status": "completed",
		"call_id": s.id, "name": s.name, "arguments": s.text,
	}
}

func (w *responsesWire) close(finish string, u Usage) {
	kind, last := w.last(finish, u)
	w.send(kind, object{"response": last})
}

// last gives the kind and the object of the last event.
func (w *responsesWire) last(finish string, u Usage) (string, object) {
	more := object{"output": w.items, "usage": object{
		"input_tokens": u.Input + u.CacheRead, "output_tokens": u.Output + u.Reasoning,
		"total_tokens":          u.Input + u.CacheRead + u.Output + u.Reasoning,
		"input_tokens_details":  object{"cached_tokens": u.CacheRead},
		"output_tokens_details": object{"reasoning_tokens": u.Reasoning},
	}}
	switch finish {
	case "length":
		more["incomplete_details"] = object{"reason": "max_output_tokens"}
	case "content-filter":
		more["incomplete_details"] = object{"reason": "content_filter"}
	default:
		return "response.completed", w.response("completed", more)
	}
	return "response.incomplete", w.response("incomplete", more)
}

func (w *responsesWire) fail(errorType, message string) {
	w.send("response.failed", object{"response": w.response("failed", object{
		"error": object{"code": errorType, "message": message},
	})})
}

func (w *responsesWire) whole(t Turn) any {
	for _, s := range t.Steps {
		switch s.kind {
		case stepText:
			w.items = append(w.items, textItem(w.itemID("msg"), s.text))
		case stepCall:
			if s.id == "" {
				s.id = fmt.Sprintf("call_%d", w.srv.number())
			}
			w.items = append(w.items, callItem(w.itemID("fc"), s))
		}
	}
	_, last := w.last(t.finish(), t.usage())
	return last
}
