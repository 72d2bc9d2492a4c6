package env_test

import (
	"context"
	"os"
	"testing"

	"github.com/switchyard-dev/switchyard/env"
)

// TestSweepEndsWhatADeadServerLeft leaves stubborn children of a dead start, and
// some of a living one, of another store and without a mark.
func TestSweepEndsWhatADeadServerLeft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	gone := env.Mark{Store: 0x12ab_0001, Boot: 7}
	start := func(mark string) int {
		t.Helper()
		out := &output{}
		p, err := b.env.Start(t.Context(), env.Command{
			// The grandchild leads a session of its own: no group reaches it.
			Shell: `trap '' TERM; setsid sh -c 'trap "" TERM; echo $$; while :; do sleep 0.1; done' & wait`, Call: mark, Output: out,
		})
		must(t, err)
		t.Cleanup(func() {
			_, _ = env.Sweep(context.WithoutCancel(t.Context()), func(m env.Mark) bool { return mark != "" && m.For("x") == mark })
			p.Stop()
		})
		out.await(t, "\n")
		return pidsIn(t, out.String())[0]
	}
	dead := start(gone.For("x"))
	living := start(env.Mark{Store: gone.Store, Boot: 8}.For("x"))
	foreign := start(env.Mark{Store: gone.Store + 1, Boot: 7}.For("x"))
	odd := start("7:cal_x")

	n, err := env.Sweep(t.Context(), func(m env.Mark) bool { return m == gone })
	must(t, err)
	if n < 2 || alive(dead) {
		t.Errorf("%d processes ended; the grandchild lives: %v", n, alive(dead))
	}
	for _, pid := range []int{living, foreign, odd} {
		if !alive(pid) {
			t.Error("a process that is not ours was ended")
		}
	}
	if n, err := env.Sweep(t.Context(), func(m env.Mark) bool { return m == gone }); n != 0 || err != nil {
		t.Errorf("a second sweep found %d, %v", n, err)
	}
	for _, pid := range []int{odd} {
		kill(t, pid)
	}
}

// kill ends a process that leads a session of its own.
func kill(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	must(t, err)
	must(t, p.Kill())
}
