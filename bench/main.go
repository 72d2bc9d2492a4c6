// Command bench measures the server against the physical limit of this machine
// in one run, interleaved: CPU time per operation first, medians of pairs. It
// builds the server, starts it on loopback with the built-in model, and stops it.
//
//	go run ./bench [-quick] [-only restart] [-soak 30m]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// sizes are how much is done; quick is for trying the program itself.
type sizes struct {
	pairs, starts, gets, pages, sessions, events, prompts, updates, subscribers int
}

func main() {
	quick := flag.Bool("quick", false, "small numbers, to try the program")
	bare := flag.Bool("bare", false, "be the bare net/http server that health.get is compared with")
	soak := flag.Duration("soak", 0, "only let 50 sessions work for this long, and look at the memory")
	only := flag.String("only", "", "measure only the figure of this name")
	flag.Parse()
	if *bare {
		os.Exit(serveBare())
	}
	n := sizes{pairs: 5, starts: 7, gets: 4000, pages: 400, sessions: 10_000, events: 1_000_000, prompts: 320, updates: 300, subscribers: 100}
	if *quick {
		n = sizes{pairs: 2, starts: 2, gets: 500, pages: 50, sessions: 500, events: 10_000, prompts: 64, updates: 50, subscribers: 20}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 12*time.Minute+*soak)
	defer cancel()
	if err := run(ctx, n, *soak, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures everything, or what is asked for, and prints a line for each figure.
func run(ctx context.Context, n sizes, soak time.Duration, only string) error {
	dir, err := os.MkdirTemp("", "switchyard-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "switchyard")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "./cmd/switchyard")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building the server: %w", err)
	}
	fmt.Printf("%s/%s, %d cores, %s, %s\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), time.Now().Format(time.DateOnly))
	fmt.Printf("%-44s %14s %14s %8s\n", "figure", "ours", "limit", "ratio")
	b := &bench{dir: dir, binary: binary, n: n}
	if soak > 0 {
		return b.soak(ctx, soak)
	}
	for _, figure := range []struct {
		name    string
		measure func(context.Context) error
	}{
		{"size", b.size},
		{"start", b.start},
		{"idle", b.idle},
		{"health", b.health},
		{"list", b.list},
		{"accept", b.accept},
		{"fan-out", b.fanOut},
		{"restart", b.restart},
		{"takeover", b.takeover},
		{"lines", func(context.Context) error { return lines() }},
	} {
		if only != "" && only != figure.name {
			continue
		}
		if err := figure.measure(ctx); err != nil {
			return fmt.Errorf("%s: %w", figure.name, err)
		}
	}
	return nil
}

// row prints one figure; a limit of 0 has none.
func row(name, unit string, ours, limit float64) {
	if limit == 0 {
		fmt.Printf("%-44s %11.1f %-3s\n", name, ours, unit)
		return
	}
	fmt.Printf("%-44s %11.1f %-2s %11.1f %-2s %7.2f\n", name, ours, unit, limit, unit, ours/limit)
}
