package integrity_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/integrity"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/store"
)

// breakage is one way to break a store.
type breakage struct {
	rule string
	// how are statements; lite and pg come before them on that engine, to take
	// what would refuse them out of the way.
	how, lite, pg string
	// lasting: nothing mends it.
	lasting bool
}

// queued is a row of the inbox, with the columns that differ left open.
const queued = "INSERT INTO inbox (session_id, ord, message_id, kind, delivery, state, body_hash, prompt, turn_id, created) "

func breakages() []breakage {
	event := "INSERT INTO event (seq, type, time, directory, workspace_id, session_id, root_session_id, size, payload) SELECT %s, type, time, directory, workspace_id, session_id, root_session_id, size, payload FROM event WHERE type = 'session.idle' AND session_id = '{s}';"
	return []breakage{
		{rule: "turn-lost", pg: "ALTER TABLE turn DROP CONSTRAINT turn_session_id_fkey;", how: "UPDATE turn SET session_id = 'ses_gone' WHERE id = '{o}'; DELETE FROM permission;"},
		{rule: "turn-state", how: "UPDATE turn SET state = 'running' WHERE id = '{t}'"},
		{rule: "turn-state", how: "UPDATE turn SET state = 'completed' WHERE id = '{o}'; DELETE FROM permission;"},
		{rule: "turn-one", how: "DROP INDEX turn_open; UPDATE turn SET session_id = '{s}' WHERE id = '{o}'; UPDATE turn SET ended = NULL, state = 'running' WHERE id = '{t}'; DELETE FROM permission;"},
		{rule: "part-open", how: `UPDATE part SET state = 'running', data = '{"id":"{p}","sessionID":"{s}","messageID":"{a}","type":"tool","callID":"call_1","tool":"bash","state":{"status":"running","input":{},"time":{"start":5}}}' WHERE id = '{p}'; UPDATE tool_call SET state = 'error';`},
		{rule: "call-open", how: "UPDATE tool_call SET ended = NULL, state = 'running' WHERE id = '{call}'"},
		{rule: "call-open", how: "UPDATE tool_call SET ended = NULL, turn_id = 'trn_gone' WHERE id = '{call}'"},
		{rule: "call-lost", how: "UPDATE tool_call SET part_id = 'part_gone' WHERE id = '{call}'", lasting: true},
		{rule: "call-result", how: "INSERT INTO tool_call SELECT 'call_twice', session_id, turn_id, message_id, part_id, tool, class, state, pre, post, started, ended FROM tool_call WHERE id = '{call}'", lasting: true},
		{rule: "call-result", how: "UPDATE tool_call SET state = 'running' WHERE id = '{call}'"},
		{rule: "inbox-state", how: "UPDATE inbox SET state = 'lost' WHERE message_id = '{w}'"},
		{rule: "inbox-state", how: "UPDATE inbox SET state = 'queued' WHERE message_id = '{m}'"},
		{rule: "inbox-lost", how: "UPDATE inbox SET state = 'delivered' WHERE message_id = '{w}'"},
		{rule: "inbox-absent", how: "DELETE FROM inbox WHERE message_id = '{m}'"},
		{
			rule: "inbox-key",
			lite: "CREATE TABLE other AS SELECT * FROM inbox; DROP TABLE inbox; ALTER TABLE other RENAME TO inbox;",
			pg:   "ALTER TABLE inbox DROP CONSTRAINT inbox_session_id_idempotency_key_key;",
			how:  "UPDATE inbox SET idempotency_key = 'key' WHERE session_id = '{q}'",
		},
		{rule: "inbox-full", how: fillInbox(65), lasting: true},
		{rule: "inbox-stuck", how: "UPDATE session SET inbox_parked = 0 WHERE id = '{q}'"},
		{rule: "message-seq", how: "UPDATE session SET message_seq = 9, message_count = 9 WHERE id = '{s}'"},
		{rule: "message-seq", how: "DELETE FROM tool_call; DELETE FROM part WHERE session_id = '{s}' AND message_seq = 1; DELETE FROM inbox WHERE message_id = '{m}'; DELETE FROM message WHERE id = '{m}'", lasting: true},
		{rule: "message-data", how: `UPDATE message SET info = '{"role":"nobody"}' WHERE id = '{a}'`},
		{rule: "message-data", how: `UPDATE message SET info = '[]' WHERE id = '{m}'`},
		{rule: "message-data", how: "UPDATE message SET role = 'assistant' WHERE id = '{m}'"},
		{rule: "answer-open", how: `UPDATE message SET info = '{"id":"{a}","sessionID":"{s}","role":"assistant","time":{"created":1}}' WHERE id = '{a}'`},
		{rule: "part-data", how: `UPDATE part SET data = '{"type":"nothing"}' WHERE id = '{p}'; DELETE FROM tool_call`},
		{rule: "part-data", how: "UPDATE part SET state = 'error' WHERE id = '{p}'; UPDATE tool_call SET state = 'error'"},
		{rule: "part-data", how: `UPDATE part SET data = '{"id":"part_other","sessionID":"{s}","messageID":"{a}","type":"step-start"}' WHERE message_seq = 2 AND ord = 0 AND session_id = '{s}'`},
		{rule: "part-data", how: `UPDATE part SET data = replace(CAST(data AS text), '"files"', '"a\u0000b\\u0000"')` + castJSON + ` WHERE id = '{p}'`},
		{rule: "part-twice", how: `INSERT INTO part SELECT session_id, message_seq, 9, id, type, state, data FROM part WHERE id = '{p}'`, lasting: true},
		{rule: "session-root", how: "UPDATE session SET root_id = id WHERE id = '{c}'"},
		{rule: "session-root", how: "UPDATE session SET root_id = '{q}' WHERE id = '{s}'"},
		{rule: "session-root", how: "UPDATE session SET parent_id = 'ses_gone' WHERE id = '{c}'"},
		{rule: "session-cycle", how: "UPDATE session SET parent_id = '{c}' WHERE id = '{s}'"},
		{rule: "ask-open", how: "UPDATE permission SET turn_id = '{t}' WHERE id = '{ask}'"},
		{rule: "ask-open", how: "INSERT INTO question (id, ord, session_id, root_session_id, workspace_id, directory, turn_id, part_id, request, state, answers, message, created) VALUES ('que_1', 1, '{s}', '{s}', '', '/r', '{t}', '', '{}', 'pending', '[]', '', 1)"},
		{rule: "event-head", how: "UPDATE event_head SET seq = 5"},
		{rule: "event-total", how: "UPDATE event_head SET total_rows = total_rows + 1, total_bytes = total_bytes - 1"},
		{rule: "event-gap", how: "UPDATE event SET seq = 7 WHERE seq = (SELECT MAX(seq) FROM event)", lasting: true},
		{rule: "event-idle", how: "UPDATE event_head SET total_rows = total_rows - 1, total_bytes = total_bytes - (SELECT size FROM event WHERE type = 'session.idle' AND session_id = '{s}'); DELETE FROM event WHERE type = 'session.idle' AND session_id = '{s}'"},
		{rule: "event-idle", how: fmt.Sprintf(event, "(SELECT seq + 1 FROM event_head)") + "UPDATE event_head SET seq = seq + 1, total_rows = total_rows + 1, total_bytes = total_bytes + (SELECT size FROM event WHERE type = 'session.idle' AND session_id = '{s}' LIMIT 1)"},
		{rule: "event-idle", how: "UPDATE event SET payload = '[]', size = size WHERE type = 'session.idle' AND session_id = '{q}'", lasting: true},
	}
}

// statements are those that break the store of b.
func (w breakage) statements(b *bundle) string {
	if b.lite {
		return w.lite + w.how
	}
	return w.pg + strings.ReplaceAll(w.how, castJSON, "::json")
}

// castJSON makes text a value of the column, where the engine asks for that.
const castJSON = "/*json*/"

func fillInbox(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, queued+"VALUES ('{q}', %d, 'msg_%d', 'prompt', 'deferred', 'queued', '', '{}', '', 1);", 100+i, i)
	}
	return b.String()
}

// TestEachRuleFindsItsFault breaks a store in each way: the rule tells, and what
// Repair can mend is mended so that nothing is left.
func TestEachRuleFindsItsFault(t *testing.T) {
	t.Parallel()
	for i, way := range breakages() {
		t.Run(fmt.Sprintf("%s-%d", way.rule, i), func(t *testing.T) {
			t.Parallel()
			breakAndMend(t, setup(t, filepath.Join(t.TempDir(), "s.db"), true), way)
		})
	}
	seen := map[string]bool{"turn-open": true} // which is no fault, see below
	for _, way := range breakages() {
		seen[way.rule] = true
	}
	for _, r := range integrity.Rules() {
		if !seen[r.Name] || r.Says == "" {
			t.Errorf("rule %q is not tried", r.Name)
		}
	}
}

// TestEachRuleFindsItsFaultOnPostgres does it in one database, where a new one
// each time would take a minute: what nothing mends comes last.
func TestEachRuleFindsItsFaultOnPostgres(t *testing.T) {
	t.Parallel()
	b := setup(t, testkit.Postgres(t), false)
	for _, way := range breakages() {
		if !way.lasting {
			breakAndMend(t, b, way)
			b.fill()
		}
	}
	for _, way := range breakages() {
		if !way.lasting {
			continue
		}
		b.fill()
		b.exec(way.statements(b))
		found := b.check()
		if !slices.ContainsFunc(found, func(f integrity.Finding) bool { return f.Rule == way.rule && !f.Repairable }) {
			t.Errorf("%s is not found: %v", way.rule, found)
		}
	}
}

func breakAndMend(t *testing.T, b *bundle, way breakage) {
	t.Helper()
	if found := b.check(); len(found) > 0 {
		t.Fatalf("what the services wrote is at fault: %v", found)
	}
	b.exec(way.statements(b))
	found := b.check()
	at := slices.IndexFunc(found, func(f integrity.Finding) bool { return f.Rule == way.rule })
	if at < 0 {
		t.Fatalf("not found: %v", found)
	}
	if found[at].Repairable == way.lasting || found[at].Detail == "" || found[at].Subject == "" {
		t.Errorf("%+v", found[at])
	}
	mended, err := integrity.Repair(t.Context(), b.store, integrity.Options{})
	if err != nil {
		t.Fatal(err)
	}
	left := b.check()
	if n := integrity.Faults(mended); n != len(left) {
		t.Errorf("the repair left %d faults and says %d", len(left), n)
	}
	if !way.lasting && len(left) > 0 {
		t.Errorf("left after the repair: %v, mended %v", left, mended)
	}
	if way.lasting != slices.ContainsFunc(left, func(f integrity.Finding) bool { return f.Rule == way.rule }) {
		t.Errorf("left after the repair: %v", left)
	}
}

// TestAnOpenTurnIsNoFault: the next start takes it up, and while a server runs it
// is no news at all.
func TestAnOpenTurnIsNoFault(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bundle) {
		for _, served := range []bool{false, true} {
			found, err := store.Get(t.Context(), b.store, func(ctx context.Context, r store.Reader) ([]integrity.Finding, error) {
				return integrity.Check(ctx, r, integrity.Options{Served: served})
			})
			if err != nil || integrity.Faults(found) != 0 {
				t.Fatalf("%v %v", found, err)
			}
			if !served && (len(found) != 1 || found[0].Rule != "turn-open" || found[0].TurnID != b.names["o"] || !found[0].Note) {
				t.Errorf("found %v", found)
			}
			if served && len(found) != 0 {
				t.Errorf("of a server's store: %v", found)
			}
		}
	})
}

// TestFindingsAreBounded: a store with the same fault everywhere is not told row
// by row for ever, and is mended all the same.
func TestFindingsAreBounded(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bundle) {
		for range 5 {
			b.session("")
		}
		b.exec("UPDATE session SET message_count = message_count + 1")
		found, err := store.Get(t.Context(), b.store, func(ctx context.Context, r store.Reader) ([]integrity.Finding, error) {
			return integrity.Check(ctx, r, integrity.Options{Limit: 3})
		})
		if err != nil || integrity.Faults(found) != 3 {
			t.Fatalf("%v %v", found, err)
		}
		mended, err := integrity.Repair(t.Context(), b.store, integrity.Options{Limit: 3})
		if err != nil || len(mended) != 9 || integrity.Faults(mended) != 0 { // eight sessions, and the note
			t.Errorf("%v %v", mended, err)
		}
	})
}
