package tool_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/switchyard-dev/switchyard/clock"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/tool"
)

func TestBashRunsCommands(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.file("sub/f", "x")
	tests := []struct {
		in     in
		output string
		exit   int
	}{
		{in{"command": "echo a; echo b >&2; echo c"}, "a\nb\nc\n", 0},
		{in{"command": "true"}, "(no output)", 0},
		{in{"command": "echo a; exit 3"}, "a\n\nThe command ended with exit code 3.", 3},
		{in{"command": "exit 3"}, "The command ended with exit code 3.", 3},
		{in{"command": "kill -9 $$"}, "The command was ended by SIGKILL.", -1},
		{in{"command": "pwd"}, b.root + "\n", 0},
		{in{"command": "pwd", "workdir": "sub"}, b.root + "/sub\n", 0},
		{in{"command": "cat"}, "(no output)", 0},
		{in{"command": "printf 'a\\377b'"}, "a\uFFFDb", 0},
		{in{"command": "echo $SWITCHYARD_CALL"}, "1:c1\n", 0},
	}
	for _, tt := range tests {
		res := b.must("bash", tt.in)
		if res.Output != tt.output || res.Metadata["exit"] != tt.exit {
			t.Errorf("%v: %q %v", tt.in, res.Output, res.Metadata)
		}
	}
	b.refused(fault.DirectoryNotFound, "bash", in{"command": "ls", "workdir": "none"})
	b.refused(fault.NotADirectory, "bash", in{"command": "ls", "workdir": "sub/f"})
	if res := b.must("bash", in{"command": "ls", "description": "List files"}); res.Title != "List files" || res.Metadata["description"] != "List files" {
		t.Errorf("%+v", res)
	}
	if res := b.must("bash", in{"command": "true\nfalse || true"}); res.Title != "true …" {
		t.Errorf("%q", res.Title)
	}
}

func TestBashTellsProgressInWholeCharacters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.with(in{"command": `printf 'a\303'; sleep 0.2; printf '\244b\n'; printf '\342\202'`})
	var mu sync.Mutex
	var deltas []string
	c.Progress = func(d string) {
		mu.Lock()
		defer mu.Unlock()
		deltas = append(deltas, d)
	}
	res, err := tool.Execute(t.Context(), b.tool("bash"), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range deltas {
		if !utf8.ValidString(d) || strings.ContainsRune(d, utf8.RuneError) {
			t.Errorf("%q", d)
		}
	}
	if joined := strings.Join(deltas, ""); joined != "aäb\n" || len(deltas) < 2 || !strings.HasPrefix(res.Output, joined) {
		t.Errorf("%q of %q", deltas, res.Output)
	}
}

func TestBashKeepsBothEndsOfLongOutput(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.with(in{"command": "echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo last"})
	live := 0
	c.Progress = func(d string) { live += len(d) }
	res, err := tool.Execute(t.Context(), b.tool("bash"), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Output) > 53000 || !strings.HasPrefix(res.Output, "first\n") || !strings.HasSuffix(res.Output, "last\n") {
		t.Errorf("%d bytes", len(res.Output))
	}
	kept, err := os.ReadFile(filepath.Join(b.outDir, "tool_c1"))
	if err != nil || len(kept) > 1<<20+100 || len(kept) < 1<<20 || !strings.Contains(string(kept), "bytes of the output were not kept") {
		t.Errorf("%d bytes kept, %v", len(kept), err)
	}
	if live > 600<<10 || res.Metadata["captureTruncated"] != true {
		t.Errorf("%d bytes live", live)
	}
}

// alive reports which of the processes in a file of pids still run.
func alive(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, pid := range strings.Fields(string(data)) {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			continue
		}
		if _, rest, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(rest, "Z") {
			left = append(left, pid)
		}
	}
	return left
}

const stubborn = `trap '' INT TERM
sh -c 'trap "" INT TERM; echo $$ >> pids; while :; do sleep 0.1; done' &
echo $$ >> pids
echo started
while :; do sleep 0.1; done`

// A tool that ignores signals, and its grandchild, are gone within three
// seconds of an interrupt, and what was printed is kept.
func TestSC12InterruptEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("stopped")
	c := b.with(in{"command": stubborn})
	began := time.Time{}
	c.Progress = func(string) {
		pids := filepath.Join(b.root, "pids")
		for range 200 {
			if data, _ := os.ReadFile(pids); len(strings.Fields(string(data))) == 2 {
				break
			}
			_ = clock.Sleep(t.Context(), 10*time.Millisecond)
		}
		began = time.Now()
		cancel(cause)
	}
	res, err := tool.Execute(ctx, b.tool("bash"), c)
	if !errors.Is(err, cause) || time.Since(began) > 4*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	if left := alive(t, filepath.Join(b.root, "pids")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	contains(t, res.Output, "started\n", "interrupted by the user")
	if res.Metadata["interrupted"] != true {
		t.Errorf("%v", res.Metadata)
	}
}

func TestBashStopsAfterItsTimeout(t *testing.T) {
	t.Parallel()
	b := setup(t)
	start := time.Now()
	res := b.must("bash", in{"command": "echo $$ > pids; echo begun; sleep 60", "timeout": 300})
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	contains(t, res.Output, "begun\n", "longer than 300ms")
	if res.Metadata["timeout"] != true || len(alive(t, filepath.Join(b.root, "pids"))) > 0 {
		t.Errorf("%v", res.Metadata)
	}
}

func TestBashDoesNotWaitForBackgroundChildren(t *testing.T) {
	t.Parallel()
	b := setup(t)
	start := time.Now()
	res := b.must("bash", in{"command": "sleep 30 & echo $!"})
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(res.Output))
	if err != nil {
		t.Fatalf("%q", res.Output)
	}
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

func TestBashPlansEachCommand(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plan, err := b.plan("bash", in{"command": "go vet ./... && yarn test *.ts | tee log", "description": "Check"})
	if err != nil || len(plan.Asks) != 1 {
		t.Fatalf("%+v %v", plan, err)
	}
	a := plan.Asks[0]
	if got := fmt.Sprintf("%q", a.Patterns); got != `["go vet ./..." "yarn test *.ts" "tee log"]` {
		t.Error(got)
	}
	// A pattern with a wildcard would allow more than was shown.
	if got := fmt.Sprintf("%q", a.Always); got != `["go vet ./..." "tee log"]` {
		t.Error(got)
	}
	if a.Permission != "bash" || a.Metadata["command"] == "" || a.Metadata["description"] != "Check" || len(a.Opaque) != 0 {
		t.Errorf("%+v", a)
	}
	plan, err = b.plan("bash", in{"command": "ls && sudo rm x"})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%q", plan.Asks[0].Always); got != `["ls"]` || len(plan.Asks[0].Opaque) == 0 {
		t.Errorf("%+v", plan.Asks[0])
	}
}

func TestBashPlansDirectoriesOutside(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.file("d/f", "x")
	b.link("/etc", "out")
	b.link("d", "in")
	up := filepath.Dir(b.root)
	tests := []struct {
		command string
		want    []string
		opaque  bool
	}{
		{"cat d/f in/f ./d/../d/f", nil, false},
		{"cat /etc/passwd", []string{"/etc/*"}, false},
		{"cat ../x", []string{up + "/*"}, false},
		{"cd .. && cat x", []string{up + "/*"}, false},
		{"cd d && cat ../f", nil, false},
		{"cd /etc && cat passwd", []string{"/etc/*"}, false},
		{"rm -rf /", []string{"/*"}, false},
		{"rm -rf ~", []string{"~/*"}, false},
		{"rm -rf ~/x /var/y/z", []string{"~/*", "/var/y/*"}, false},
		{"cat out/passwd", []string{b.root + "/out/*"}, true},
		{"cd out && cat passwd", []string{b.root + "/out/*"}, true},
		{"cat out/../x", nil, true},
		{"cp a " + up + "/b", []string{up + "/*"}, false},
		{"ls > /tmp/list", []string{"/tmp/*"}, true},
		{"cp " + b.outDir + "/x .", []string{b.outDir + "/*"}, false},
	}
	for _, tt := range tests {
		plan, err := b.plan("bash", in{"command": tt.command})
		if err != nil {
			t.Errorf("%q: %v", tt.command, err)
			continue
		}
		var got []string
		for _, a := range plan.Asks {
			if a.Permission == "external_directory" {
				got = append(got, a.Patterns...)
			}
		}
		own := plan.Asks[len(plan.Asks)-1]
		if fmt.Sprint(got) != fmt.Sprint(tt.want) || (len(own.Opaque) > 0) != tt.opaque {
			t.Errorf("%q: %v, %v", tt.command, got, own.Opaque)
		}
	}
}
