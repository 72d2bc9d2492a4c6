package agent_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/agent"
	"github.com/switchyard-dev/switchyard/chat"
	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/rule"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// spoken gives the conversation as "user words" and "answer words" in order, each
// with its turn.
func (b *bundle) spoken(ses session.Session) (words []string, turns []id.Turn) {
	b.t.Helper()
	for _, item := range b.items(ses) {
		who, turn := "user ", id.Turn("")
		switch m := item.Info.(type) {
		case *chat.AssistantMessage:
			who, turn = "answer ", m.TurnID
			if m.Time.Completed == 0 || m.Error != nil {
				who = "broken "
			}
		case *chat.UserMessage:
			turn = m.TurnID
		}
		text := ""
		for _, p := range item.Parts {
			if t, ok := p.(*chat.TextPart); ok {
				text += t.Text
			}
		}
		words, turns = append(words, who+text), append(turns, turn)
	}
	return words, turns
}

// TestAPromptAroundTheEndOfATurnGetsItsAnswer sends a second prompt at a random
// moment around the end of the first one's turn, a thousand times.
func TestAPromptAroundTheEndOfATurnGetsItsAnswer(t *testing.T) {
	t.Parallel()
	b := setupStore(t, store.Config{Relaxed: true}) // many turns, and none of them lost
	const tries, workers = 1000, 4
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]int{}
	for worker := range workers {
		wg.Go(func() {
			span := 20 * time.Millisecond // how long a turn takes, learned as we go
			for n := worker; n < tries; n += workers {
				how, took := b.race(n, rand.N(3*span/2))
				span = max(2*time.Millisecond, (3*span+took)/4)
				mu.Lock()
				seen[how]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("the second prompt: %v", seen)
	if len(seen) < 2 {
		t.Errorf("all tries took one way: %v", seen)
	}
}

// race is one try: it tells how the second prompt was met, and how long the first
// turn went on after its prompt was stored.
func (b *bundle) race(n int, wait time.Duration) (how string, took time.Duration) {
	ses := b.session()
	first := b.prompt(ses, "say:one")
	began := time.Now()
	if err := clock.Sleep(b.t.Context(), wait); err != nil {
		b.t.Error(err)
		return "", 0
	}
	second := b.prompt2(ses, "say:two", []session.Delivery{session.Immediate, session.Deferred}[n%2])
	got, err := b.engine.Wait(b.t.Context(), agent.WaitInput{SessionID: ses.ID, TurnID: first.TurnID})
	took = time.UnixMilli(got.Turn.Ended).Sub(began)
	if err != nil || got.Outcome != "completed" {
		b.t.Errorf("try %d: the first turn: %+v, %v", n, got, err)
	}
	if got := b.wait(ses); got.Outcome != "completed" {
		b.t.Errorf("try %d: the last turn: %+v", n, got)
	}
	words, turns := b.spoken(ses)
	users, answers := []string{}, []string{}
	for i, w := range words {
		if strings.HasPrefix(w, "user ") {
			users = append(users, w)
		} else {
			answers = append(answers, w)
		}
		if i > 0 && turns[i] != turns[i-1] {
			how = "a turn of its own"
		}
	}
	// The one prompt may have joined before the first was answered.
	whole := slices.Equal(answers, []string{"answer one", "answer two"}) || slices.Equal(answers, []string{"answer two"})
	if !slices.Equal(users, []string{"user say:one", "user say:two"}) || !whole || words[len(words)-1] != "answer two" {
		b.t.Errorf("try %d after %v: %q", n, wait, words)
	}
	queue, err := b.sessions.Queue(b.t.Context(), ses.ID)
	if err != nil || len(queue) != 0 {
		b.t.Errorf("try %d: still waiting: %+v, %v", n, queue, err)
	}
	switch {
	case second.Delivered:
		how = "idle"
	case how == "":
		how = "joined"
	}
	return how, took
}

// TestAWithdrawnPromptIsNeverDelivered takes prompts back while their turn may
// begin: either the withdrawal or the delivery wins, never both.
func TestAWithdrawnPromptIsNeverDelivered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var wg sync.WaitGroup
	for worker := range 10 {
		wg.Go(func() {
			for n := range 20 {
				ses := b.session()
				b.prompt(ses, "say:one")
				delivery := []session.Delivery{session.Immediate, session.Deferred}[n%2]
				second := b.prompt2(ses, "say:two", delivery)
				if err := clock.Sleep(t.Context(), rand.N(10*time.Millisecond)); err != nil {
					t.Error(err)
				}
				err := b.engine.Withdraw(t.Context(), ses.ID, second.MessageID)
				if got := b.wait(ses); got.Outcome != "completed" {
					t.Errorf("%d/%d: %+v", worker, n, got)
				}
				words, _ := b.spoken(ses)
				switch {
				case err == nil && slices.Contains(words, "user say:two"):
					t.Errorf("%d/%d: withdrawn and delivered: %q", worker, n, words)
				case err != nil && (!fault.Is(err, fault.AlreadyDelivered) || words[len(words)-1] != "answer two"):
					t.Errorf("%d/%d: %v: %q", worker, n, err, words)
				}
			}
		})
	}
	wg.Wait()
}

// TestDeferredPromptsFollowOneAtATime: an immediate prompt joins at the next step,
// deferred ones each get a turn, in the order of their admission.
func TestDeferredPromptsFollowOneAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ses := b.session()
	b.prompt(ses, `tool:write:{"path":"f","content":"x"}`)
	req := b.asked(1)[0]
	for n := range 4 {
		b.prompt2(ses, fmt.Sprintf("say:later %d", n), session.Deferred)
	}
	b.prompt2(ses, "say:now", session.Immediate)
	if _, err := b.perms.Reply(t.Context(), req.ID, rule.Once, ""); err != nil {
		t.Fatal(err)
	}
	b.wait(ses)
	words, turns := b.spoken(ses)
	var users []string
	var inTurn []id.Turn
	for i, w := range words {
		if text, ok := strings.CutPrefix(w, "user "); ok {
			users, inTurn = append(users, text), append(inTurn, turns[i])
		}
	}
	want := []string{`tool:write:{"path":"f","content":"x"}`, "say:now", "say:later 0", "say:later 1", "say:later 2", "say:later 3"}
	if !slices.Equal(users, want) {
		t.Fatalf("order %q", users)
	}
	if inTurn[0] != inTurn[1] || len(slices.Compact(inTurn[1:])) != 5 {
		t.Errorf("turns %v", inTurn)
	}
	if words[3] != "user say:now" && words[2] != "user say:now" {
		t.Errorf("it did not join at the next step: %q", words)
	}
}

// TestStartQueued starts what waits in an idle session, once, and nothing else.
func TestStartQueued(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ses := b.session()
	b.prompt(ses, "hang")
	b.eventually("a step", func() bool { return len(b.items(ses)) == 2 })
	b.prompt2(ses, "say:waits", session.Deferred)
	if err := b.engine.StartQueued(t.Context(), ses.ID); err != nil { // busy
		t.Fatal(err)
	}
	if err := b.engine.Interrupt(t.Context(), ses.ID); err != nil {
		t.Fatal(err)
	}
	b.wait(ses)
	if err := b.engine.StartQueued(t.Context(), ses.ID); err != nil { // parked
		t.Fatal(err)
	}
	if words, _ := b.spoken(ses); slices.Contains(words, "user say:waits") {
		t.Fatalf("started what is parked: %q", words)
	}
	queue, err := b.sessions.Queue(t.Context(), ses.ID)
	if err != nil || len(queue) != 1 {
		t.Fatalf("%+v %v", queue, err)
	}
	in := session.Redelivery{SessionID: ses.ID, MessageID: queue[0].MessageID, Delivery: session.Immediate}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := b.engine.Redeliver(t.Context(), in); err != nil && !fault.Is(err, fault.AlreadyDelivered) {
				t.Error(err)
			}
			if err := b.engine.StartQueued(t.Context(), ses.ID); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := b.wait(ses); got.Outcome != "completed" {
		t.Fatalf("%+v", got)
	}
	if words, _ := b.spoken(ses); words[len(words)-1] != "answer waits" || len(words) != 4 {
		t.Errorf("%q", words)
	}
}

// TestAStartLetsNoPromptWaitForEver finds a prompt that nothing would start, as a
// store that was mended by hand may hold one, and leaves a parked one alone.
func TestAStartLetsNoPromptWaitForEver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ses := b.session()
	b.prompt(ses, "hang")
	b.eventually("a step", func() bool { return len(b.items(ses)) == 2 })
	b.prompt2(ses, "say:waits", session.Deferred)
	if err := b.engine.Interrupt(t.Context(), ses.ID); err != nil {
		t.Fatal(err)
	}
	b.wait(ses)
	b.restart(false)
	if busy, err := b.sessions.Busy(t.Context(), ses.ID); err != nil || busy {
		t.Fatalf("a parked prompt was started: %v %v", busy, err)
	}
	err := b.store.Write(t.Context(), store.Durable, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.SessionPark(ctx, db.SessionParkParams{ID: string(ses.ID)}) // not parked any more
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b.restart(false)
	if got := b.wait(ses); got.Outcome != "completed" {
		t.Fatalf("%+v", got)
	}
	if words, _ := b.spoken(ses); words[len(words)-1] != "answer waits" {
		t.Errorf("%q", words)
	}
}
