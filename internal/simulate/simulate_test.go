package simulate_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/switchyard-dev/switchyard/internal/simulate"
)

var (
	seeds = flag.Int("simulate.seeds", 2000, "how many histories to play")
	first = flag.Uint64("simulate.seed", 1, "the first seed; a failing one is played again with -simulate.seeds 1")
	steps = flag.Int("simulate.steps", 25, "how many things happen in a history")
)

// TestHistories plays seeded histories side by side. A failing one prints its seed.
func TestHistories(t *testing.T) {
	t.Parallel()
	template, err := simulate.Template(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var next atomic.Int64
	for worker := range 4 {
		t.Run(fmt.Sprintf("worker%d", worker), func(t *testing.T) {
			t.Parallel()
			for n := next.Add(1) - 1; n < int64(*seeds); n = next.Add(1) - 1 {
				seed := *first + uint64(n)
				place := filepath.Join(dir, fmt.Sprint(seed))
				if err := os.Mkdir(place, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := simulate.Run(t.Context(), seed, *steps, place, template); err != nil {
					t.Fatal(err)
				}
				if err := os.RemoveAll(place); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
