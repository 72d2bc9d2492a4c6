package floors

// Repository gives this repository's rules. The floors are explained in
// ARCHITECTURE.md; a new package gets its line here.
func Repository() Rules {
	return Rules{
		Module: "github.com/switchyard-dev/switchyard",
		Floors: floorOf(),
		Tools:  []string{"internal/crashtest", "internal/gen", "internal/floors", "internal/testkit", "internal/testservices", "internal/simulate", "bench"},
		Only:   owners(),
		At: map[string]string{
			"runtime":    "it resolves contexts",
			"session":    "it pins a session's context in its row",
			"agent":      "it works for one pinned session",
			"permission": "a reply belongs to the context in the stored request",
			"question":   "a reply belongs to the context in the stored request",
		},
		Exceptions: []Exception{
			{"access", "github.com/oklog/ulid/v2", "a token's id is its hash in the form of all ids, not a new id"},
		},
	}
}

func floorOf() map[string]int {
	floors := map[string]int{}
	for floor, components := range [][]string{
		{"id", "fault", "clock", "sse", "lifecycle", "failpoint"},
		{"store", "chat", "rule", "env"},
		{"event", "lease", "integrity", "idempotency"},
		{"config", "catalog", "auth", "access", "llm"},
		{
			"session", "project", "workspace", "vcs", "pty", "fs", "mcp", "lsp", "tool", "skill", "command",
			"formatter", "permission", "question", "provider", "snapshot", "attachment",
		},
		{"agent", "transfer", "warp", "undo"},
		{"runtime"},
		{"op"},
		{"operations"},
		{"api", "cli", "compat/openheim", "compat/hermes", "compat/acp", "compat/opencode"},
		{"app"},
		{"cmd/switchyard"},
	} {
		for _, c := range components {
			floors[c] = floor
		}
	}
	return floors
}

// owners keeps each large dependency behind one door, so that it can be replaced
// there, and each capability where it is guarded.
func owners() map[string][]string {
	return map[string][]string{
		"github.com/oklog/ulid/v2":         {"id"},
		"database/sql":                     {"store"},
		"github.com/jackc/pgx/v5":          {"store"},
		"modernc.org/sqlite":               {"store"},
		"github.com/pressly/goose/v3":      {"store"},
		"charm.land/fantasy":               {"llm"},
		"charm.land/catwalk":               {"catalog"},
		"github.com/danielgtaylor/huma/v2": {"op"},
		"github.com/go-chi/chi/v5":         {"op", "api"},
		"github.com/spf13/cobra":           {"cli", "cmd/switchyard"},
		"github.com/bluekeyes/go-gitdiff":  {"vcs"},
		"os/exec":                          {"env", "pty", "cli"},
	}
}
