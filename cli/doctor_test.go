package cli_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the test breaks a store behind the product's back

	"github.com/switchyard-dev/switchyard/integrity"
	"github.com/switchyard-dev/switchyard/internal/testkit"
	"github.com/switchyard-dev/switchyard/store"
	"github.com/switchyard-dev/switchyard/store/db"
)

// doctored runs the doctor as JSON and gives what it says with its exit code.
type doctored struct {
	code     int
	Checks   []struct{ Level, What, Detail string }
	Findings []integrity.Finding
	Backup   string
}

func (d doctored) says(text string) bool {
	for _, c := range d.Checks {
		if c.What == "store" && strings.Contains(c.Level+" "+c.Detail, text) {
			return true
		}
	}
	return false
}

func doctor(t *testing.T, work string, args ...string) doctored {
	t.Helper()
	out, code := runProgram(t, work, append([]string{"doctor", "--json"}, args...)...)
	d := doctored{code: code}
	if err := json.Unmarshal(out, &d); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return d
}

func runProgram(t *testing.T, work string, args ...string) ([]byte, int) {
	t.Helper()
	env := []string{}
	if err := prepare(work, func(name, value string) { env = append(env, name+"="+value) }); err != nil {
		t.Fatal(err)
	}
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir, cmd.Env = filepath.Join(work, "repo"), env
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out, cmd.ProcessState.ExitCode()
}

// TestDoctorMendsAStore: it finds what is broken, mends it after a copy was made,
// and then finds nothing.
func TestDoctorMendsAStore(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	if out, code := runProgram(t, work, "run", "say:hello"); code != 0 {
		t.Fatalf("%d: %s", code, out)
	}
	path := filepath.Join(work, "home", "state", "switchyard", "switchyard.db")
	breakStore(t, path, "UPDATE session SET message_count = 77; UPDATE message SET seq = 9 WHERE seq = 2")
	d := doctor(t, work)
	if d.code != 1 || len(d.Findings) != 1 || d.Findings[0].Rule != "message-seq" || d.Findings[0].Repairable ||
		!d.says("fail") || !d.says("is damaged: a row of part refers to one of message that is gone") {
		t.Errorf("a hole: %+v", d)
	}
	breakStore(t, path, "UPDATE message SET seq = 2 WHERE seq = 9")
	if d := doctor(t, work); d.code != 1 || len(d.Findings) != 1 || !d.Findings[0].Repairable || !d.says("(--repair mends it)") {
		t.Errorf("a wrong count: %+v", d)
	}
	d = doctor(t, work, "--repair")
	if d.code != 0 || len(d.Findings) != 1 || !d.Findings[0].Repaired || !d.says("mended: message-seq") {
		t.Errorf("the repair: %+v", d)
	}
	info, err := os.Stat(d.Backup)
	if err != nil || info.Mode().Perm() != 0o600 || filepath.Dir(d.Backup) != filepath.Dir(path) {
		t.Fatalf("the copy: %q %v %v", d.Backup, info, err)
	}
	if copied := doctor(t, work, "--database", d.Backup); copied.code != 1 || copied.Findings[0].Rule != "message-seq" {
		t.Errorf("the copy is not of before: %+v", copied)
	}
	if d := doctor(t, work); d.code != 0 || len(d.Findings) != 0 {
		t.Errorf("after the repair: %+v", d)
	}
	breakStore(t, path, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, 1)")
	if d := doctor(t, work); d.code != 2 || !d.says("has schema version 9000") {
		t.Errorf("a newer schema: %+v", d)
	}
}

func breakStore(t *testing.T, path, statements string) {
	t.Helper()
	handle, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	if _, err := handle.ExecContext(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
}

// TestDoctorLeavesASharedStoreAlone: a database with a live server is read and not
// repaired.
func TestDoctorLeavesASharedStoreAlone(t *testing.T) {
	t.Parallel()
	url, work := testkit.Postgres(t), t.TempDir()
	if d := doctor(t, work, "--database", url); d.code != 2 {
		t.Errorf("an empty database: %+v", d)
	}
	opened, err := store.Open(t.Context(), store.Config{URL: url, Owner: "a server"})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	live := func(expires int64) {
		err := opened.Write(t.Context(), store.Durable, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.ServerDelete(ctx, db.ServerDeleteParams{Owner: "alive"}); err != nil {
				return err
			}
			if _, err := tx.MendEventHead(ctx, db.MendEventHeadParams{Seq: 1 << 30, TotalRows: 5}); err != nil {
				return err
			}
			return tx.ServerInsert(ctx, db.ServerInsertParams{Owner: "alive", Boot: 1, Expires: expires})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	live(1 << 60)
	if d := doctor(t, work, "--database", url); d.code != 1 || !d.says("ok the database is in use by a server (alive)") || len(d.Findings) != 1 {
		t.Errorf("looking at it: %+v", d)
	}
	if d := doctor(t, work, "--database", url, "--repair"); d.code != 2 || !d.says("stop it before repairing") || d.Findings[0].Repaired {
		t.Errorf("repairing it: %+v", d)
	}
	live(1)
	if d := doctor(t, work, "--database", url, "--repair"); d.code != 0 || d.Backup != "" || !d.Findings[0].Repaired {
		t.Errorf("without its server: %+v", d)
	}
}
