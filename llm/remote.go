package llm

import (
	"context"
	"errors"
	"io"
	"iter"
	"net"
	"net/url"

	"charm.land/fantasy"

	"github.com/switchyard-dev/switchyard/llm/internal/wire"
)

// remoteModel is a model of a remote provider.
type remoteModel struct {
	p       *remote
	id      string
	dialect dialect
	lm      fantasy.LanguageModel
}

// Info names the model.
func (m *remoteModel) Info() Info { return Info{ProviderID: m.p.id, ModelID: m.id} }

// Stream makes one request.
func (m *remoteModel) Stream(ctx context.Context, c Call) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := m.run(ctx, c, func(e Event) bool { return yield(e, nil) }); err != nil {
			yield(nil, err)
		}
	}
}

// run gives the answer to emit. It returns nil when the answer is whole or the
// consumer has left.
func (m *remoteModel) run(ctx context.Context, c Call, emit func(Event) bool) *Error {
	if m.p.lacksKey() {
		return &Error{Kind: KindAuth, ProviderID: m.p.id, Message: "no API key is configured"}
	}
	// The library leaves the answer open when its consumer leaves; Close does not.
	inner, x := wire.Begin(ctx, &m.p.wire)
	defer x.Close()

	parts, err := m.lm.Stream(inner, m.prepare(c, x))
	if err != nil {
		return m.fault(ctx, inner, x, err)
	}
	a := newAssembler(m.dialect, c.Messages, &x.Tap, emit)
	for part := range parts {
		switch part.Type {
		case fantasy.StreamPartTypeError:
			return m.fault(ctx, inner, x, part.Error)
		case fantasy.StreamPartTypeFinish:
			return m.finish(a, x, part)
		}
		a.take(part)
		if a.left {
			return nil
		}
	}
	return m.fault(ctx, inner, x, io.ErrUnexpectedEOF)
}

// lacksKey reports whether requests are bound to be refused. A compatible
// provider may be a local server that wants no key.
func (p *remote) lacksKey() bool {
	if p.hasKey || p.kind == ProviderOpenAICompatible {
		return false
	}
	for name := range p.wire.Headers {
		if wire.IsCredential(name) {
			return false
		}
	}
	return true
}

// finish ends an answer that the library takes for whole.
func (m *remoteModel) finish(a *assembler, x *wire.Exchange, part fantasy.StreamPart) *Error {
	reason := Reason(part.FinishReason)
	switch {
	case x.Tap.Finish != "":
		reason = reasonOf(x.Tap.Finish, reason)
	case m.dialect != dialectResponses:
		return m.truncated()
	}
	if reason == ReasonError {
		return told(wire.Trouble{Text: "it broke the answer off"}, m.p.id, m.p.redact)
	}
	a.finish(reason, usageOf(part.Usage))
	return nil
}

// reasonOf reads a raw finish reason; other is what the library makes of it.
func reasonOf(raw string, other Reason) Reason {
	switch raw {
	case "stop", "end_turn", "stop_sequence", "eos":
		return ReasonStop
	case "tool_calls", "function_call", "tool_use":
		return ReasonToolCalls
	case "length", "max_tokens", "max_output_tokens", "model_context_window_exceeded":
		return ReasonLength
	case "content_filter", "refusal":
		return ReasonContentFilter
	case "error":
		return ReasonError
	}
	if other == ReasonUnknown {
		return ReasonOther
	}
	return other
}

// fault sorts the failure of an exchange. What the provider told comes before
// what the library makes of it.
func (m *remoteModel) fault(ctx, inner context.Context, x *wire.Exchange, err error) *Error {
	if ctx.Err() != nil {
		return &Error{Kind: KindCanceled, ProviderID: m.p.id, Message: "the request was cancelled", cause: context.Cause(ctx)}
	}
	for _, t := range []*wire.Trouble{x.Failure, x.Tap.Trouble} {
		if t != nil {
			return told(*t, m.p.id, m.p.redact)
		}
	}
	if errors.Is(context.Cause(inner), wire.ErrSilent) {
		return m.passing(KindNetwork, "the provider said nothing for "+m.p.wire.Idle.String())
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return m.truncated()
	}
	var dial *url.Error
	if errors.As(err, &dial) {
		return m.passing(KindNetwork, "the provider was not reached: "+m.p.redact.clean(dial.Err.Error()))
	}
	var broken *net.OpError
	if errors.As(err, &broken) {
		return m.passing(KindNetwork, "the connection to the provider broke")
	}
	if !x.Answered() {
		return &Error{Kind: KindInvalid, ProviderID: m.p.id, Message: "the request cannot be made: " + m.p.redact.clean(err.Error())}
	}
	return m.passing(KindTruncated, "the provider's answer could not be read")
}

func (m *remoteModel) passing(kind Kind, message string) *Error {
	return &Error{Kind: kind, ProviderID: m.p.id, Retryable: true, Message: message}
}

func (m *remoteModel) truncated() *Error {
	return m.passing(KindTruncated, "the provider's answer broke off")
}
