package vcs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/switchyard-dev/switchyard/vcs"
)

// large makes a repository of n small files with some changed and a few untracked.
func large(b *testing.B, n, changes int) *bundle {
	r := setup(b)
	r.git("init", "-q")
	for i := range n {
		dir := fmt.Sprintf("%s/d%d/e%d", r.dir, i/1000, i/50%20)
		if i%50 == 0 {
			r.must(os.MkdirAll(dir, 0o700))
		}
		r.must(os.WriteFile(fmt.Sprintf("%s/f%d.txt", dir, i), fmt.Appendf(nil, "file %d\n%s", i, manyLines(5)), 0o600))
	}
	r.git("add", "-A")
	r.git("commit", "-qm", "all")
	time.Sleep(1100 * time.Millisecond) //nolint:forbidigo // git reads files again that are as old as its index
	r.git("status", "--porcelain")
	r.with(filepath.Join(r.dir, ".git/index"), "", "update-index", "-q", "--refresh")
	for i := range changes {
		at := i * (n / changes)
		r.write(fmt.Sprintf("d%d/e%d/f%d.txt", at/1000, at/50%20, at), "changed\n"+manyLines(6))
	}
	time.Sleep(1100 * time.Millisecond) //nolint:forbidigo // so that the files are old enough for our cache
	return r
}

func median(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2].Microseconds()) / 1000
}

// BenchmarkAgainstGit compares medians of runs in turn: cold is a fresh service,
// warm one that has answered before.
//
//	go test ./vcs -run - -bench AgainstGit -benchtime 7x
func BenchmarkAgainstGit(b *testing.B) {
	for _, n := range []int{10_000, 50_000} {
		for _, changes := range []int{50, 200} {
			b.Run(fmt.Sprintf("%dk/%d", n/1000, changes), func(b *testing.B) { againstGit(b, large(b, n, changes)) })
		}
	}
}

func againstGit(b *testing.B, r *bundle) {
	warm := r.service("")
	r.status(warm)
	times := map[string][]time.Duration{}
	measure := func(name string, f func()) {
		at := time.Now()
		f()
		times[name] = append(times[name], time.Since(at))
	}
	for b.Loop() {
		measure("get", func() { _, _ = warm.Get(b.Context()) })
		measure("git-status", func() { r.git("status", "--porcelain=v2", "-z", "-uall") })
		measure("status-cold", func() { r.status(r.service("")) })
		measure("status-warm", func() { r.status(warm) })
		measure("git-diff", func() { r.git("diff", "HEAD") })
		measure("git-others", func() { r.git("ls-files", "-z", "--others", "--exclude-standard") })
		measure("diff", func() { r.diff(warm, "") })
	}
	for name, d := range times {
		b.ReportMetric(median(d), name+"-ms")
	}
	b.ReportMetric(median(times["status-cold"])/median(times["git-status"]), "cold/git")
	b.ReportMetric(median(times["status-warm"])/median(times["git-status"]), "warm/git")
	b.ReportMetric(median(times["diff"])/(median(times["git-diff"])+median(times["git-others"])), "diff/git")
}

// BenchmarkLargeDiff tells how much memory a diff of 50 MB takes, as JSON and as
// a patch.
func BenchmarkLargeDiff(b *testing.B) {
	r := repo(b, map[string]string{"big.txt": "x\n"})
	r.write("big.txt", manyLines(2_000_000))
	r.write("new.txt", manyLines(200_000))
	s := r.service("")
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := r.diff(s, "")
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/(1<<20), "json-MB")
		if len(got) != 2 || !got[0].Truncated {
			b.Fatal(len(got))
		}
		var size counter
		runtime.ReadMemStats(&before)
		r.must(s.WritePatch(b.Context(), vcs.DiffOptions{Context: 3}, &size))
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/(1<<20), "patch-MB")
		b.ReportMetric(float64(size)/(1<<20), "size-MB")
	}
}

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
