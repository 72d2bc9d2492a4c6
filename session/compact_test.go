package session_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/session"
)

// visible gives the texts of the messages that the model sees.
func (b *bundle) visible(ses session.Session) string {
	b.t.Helper()
	raw, err := b.svc.Context(b.t.Context(), ses.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	items, err := session.Items(raw)
	if err != nil {
		b.t.Fatal(err)
	}
	var out []string
	for _, item := range items {
		for _, p := range item.Parts {
			switch v := p.(type) {
			case *chat.TextPart:
				out = append(out, v.Text)
			case *chat.CompactionPart:
				out = append(out, "mark")
			}
		}
	}
	return strings.Join(out, " ")
}

// compaction makes what a turn stores when it has a summary.
func (b *bundle) compaction(run session.Run, text string, tail id.Message, wish *session.CompactWish) session.CompactionInput {
	mark := chat.NewUser(chat.MessageHead{ID: id.Message("msg_mark_" + text), SessionID: run.SessionID}, "build", chat.ModelRef{}, 1)
	if wish != nil {
		mark.ID = wish.MessageID
	}
	sum := chat.NewAssistant(chat.MessageHead{ID: id.Message("msg_" + text), SessionID: run.SessionID}, 1)
	sum.Summary, sum.Time.Completed = true, 2
	mark.TurnID, sum.TurnID = run.TurnID, run.TurnID
	head := func(msg id.Message) chat.PartHead {
		return chat.PartHead{ID: id.Part("part_" + string(msg)), SessionID: run.SessionID, MessageID: msg}
	}
	return session.CompactionInput{
		Mark: mark, MarkPart: &chat.CompactionPart{PartHead: head(mark.ID), Type: "compaction", TailStartID: tail},
		Summary: sum, Parts: []chat.Part{chat.NewText(head(sum.ID), text)}, Wish: wish, Usage: chat.Usage{Output: 7},
	}
}

// prompts joins prompts to a running turn.
func (b *bundle) prompts(ses session.Session, run session.Run, texts ...string) []id.Message {
	b.t.Helper()
	var out []id.Message
	for _, text := range texts {
		out = append(out, b.admit(ses, text).MessageID)
	}
	if at, err := b.svc.Join(b.t.Context(), run); err != nil || at.Joined != len(texts) {
		b.t.Fatalf("%+v %v", at, err)
	}
	return out
}

func TestContextAfterCompactions(t *testing.T) {
	t.Parallel()
	onBoth(t, func(b *bundle) {
		ses := b.session()
		run := *b.admit(ses, "one").Started
		two := b.prompts(ses, run, "two", "three")[0]
		if err := b.svc.BeginCompacting(b.t.Context(), run); err != nil {
			b.t.Fatal(err)
		}
		if got := b.visible(ses); got != "one two three" {
			b.t.Fatalf("before: %s", got)
		}
		if err := b.svc.PutCompaction(b.t.Context(), run, b.compaction(run, "sum1", two, nil)); err != nil {
			b.t.Fatal(err)
		}
		if got := b.visible(ses); got != "mark sum1 two three" {
			b.t.Fatalf("after: %s", got)
		}
		row, err := b.svc.Get(b.t.Context(), ses.ID)
		if err != nil || row.Time.Compacting != 0 || row.Tokens.Output != 7 {
			b.t.Fatalf("%+v %v", row.Session, err)
		}
		b.prompts(ses, run, "four")
		// The tail of the second reaches back over the first one's pair.
		if err := b.svc.PutCompaction(b.t.Context(), run, b.compaction(run, "sum2", two, nil)); err != nil {
			b.t.Fatal(err)
		}
		b.prompts(ses, run, "five")
		if got := b.visible(ses); got != "mark sum2 two three four five" {
			b.t.Fatalf("after the second: %s", got)
		}
		if err := b.svc.PutCompaction(b.t.Context(), run, b.compaction(run, "sum3", "", nil)); err != nil {
			b.t.Fatal(err)
		}
		if got := b.visible(ses); got != "mark sum3" {
			b.t.Fatalf("without a tail: %s", got)
		}
		page, err := b.svc.MessageList(b.t.Context(), session.MessageListInput{SessionID: ses.ID})
		if err != nil || *page.Total != 11 {
			b.t.Fatalf("%d messages, %v", *page.Total, err)
		}
	})
}

// A summary comes with all that belongs to it, or not at all.
func TestCompactionIsOneWrite(t *testing.T) {
	t.Parallel()
	onBoth(t, func(b *bundle) {
		ses := b.session()
		run := *b.admit(ses, "one").Started
		if _, err := b.svc.AdmitCompact(b.t.Context(), ses.ID, "me", 1); err != nil {
			b.t.Fatal(err)
		}
		at, err := b.svc.Join(b.t.Context(), run)
		if err != nil || at.Compact == nil {
			b.t.Fatalf("%+v %v", at, err)
		}
		if err := b.svc.BeginCompacting(b.t.Context(), run); err != nil {
			b.t.Fatal(err)
		}
		lost := run
		lost.Generation++
		if err := b.svc.PutCompaction(b.t.Context(), lost, b.compaction(run, "sum", "", at.Compact)); !errors.Is(err, session.ErrLost) {
			b.t.Fatalf("a lost run: %v", err)
		}
		twice := b.compaction(run, "sum", "", at.Compact)
		twice.Summary.ID = twice.Mark.ID // the second message cannot be stored
		if err := b.svc.PutCompaction(b.t.Context(), run, twice); err == nil {
			b.t.Fatal("two messages of one id were stored")
		}
		row, err := b.svc.Get(b.t.Context(), ses.ID)
		if err != nil || b.visible(ses) != "one" || row.ContextSeq() != 0 || row.Time.Compacting == 0 {
			b.t.Fatalf("%q, %+v", b.visible(ses), row)
		}
		if again, err := b.svc.Join(b.t.Context(), run); err != nil || again.Compact == nil {
			b.t.Fatalf("the wish is gone: %v", err)
		}
		// The end of the turn takes the mark of a compaction away that is no more.
		again, next, err := b.svc.End(b.t.Context(), run, session.EndInput{Outcome: session.TurnFailed})
		if err != nil || again || next == nil {
			b.t.Fatalf("the wish starts no turn: %v %v %v", again, next, err)
		}
		if row, err = b.svc.Get(b.t.Context(), ses.ID); err != nil || row.Time.Compacting != 0 {
			b.t.Fatalf("%+v %v", row.Time, err)
		}
	})
}

func TestAdmitCompact(t *testing.T) {
	t.Parallel()
	onBoth(t, func(b *bundle) {
		if _, err := b.svc.AdmitCompact(b.t.Context(), "ses_00000000000000000000000000", "me", 1); !fault.Is(err, fault.SessionNotFound) {
			b.t.Fatalf("%v", err)
		}
		ses := b.session()
		run := *b.admit(ses, "one").Started
		b.admit(ses, "two")
		if _, _, err := b.svc.Interrupt(b.t.Context(), ses.ID); err != nil {
			b.t.Fatal(err)
		}
		if _, _, err := b.svc.End(b.t.Context(), run, session.EndInput{Outcome: session.Cancelled}); err != nil {
			b.t.Fatal(err)
		}
		// On an idle session it starts a turn, in which what is parked stays parked.
		first, err := b.svc.AdmitCompact(b.t.Context(), ses.ID, "me", 1)
		if err != nil || first.Started == nil || !first.Delivered {
			b.t.Fatalf("%+v %v", first, err)
		}
		repeated, err := b.svc.AdmitCompact(b.t.Context(), ses.ID, "me", 1)
		if err != nil || repeated.Started != nil || repeated.TurnID != first.TurnID || repeated.MessageID != first.MessageID || !repeated.Replayed {
			b.t.Fatalf("%+v %v", repeated, err)
		}
		at, err := b.svc.Join(b.t.Context(), *first.Started)
		if err != nil || at.Joined != 0 || at.Compact == nil || at.Compact.MessageID != first.MessageID {
			b.t.Fatalf("%+v %v", at, err)
		}
		if err := b.svc.PutCompaction(b.t.Context(), *first.Started, b.compaction(*first.Started, "sum", "", at.Compact)); err != nil {
			b.t.Fatal(err)
		}
		if again, next, err := b.svc.End(b.t.Context(), *first.Started, session.EndInput{Outcome: session.Completed}); err != nil || again || next != nil {
			b.t.Fatalf("%v %v %v", again, next, err)
		}
		// A full inbox takes no wish either.
		third := b.admit(ses, "three")
		if !third.Delivered {
			b.t.Fatalf("%+v", third)
		}
		for range session.MaxQueued - 1 {
			b.admit(ses, "waits")
		}
		if _, err := b.svc.AdmitCompact(b.t.Context(), ses.ID, "me", 1); !fault.Is(err, fault.QueueFull) {
			b.t.Fatalf("%v", err)
		}
	})
}
