package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// testEvent is a line of `go test -json`, see `go doc test2json`.
type testEvent struct {
	Action     string
	Package    string
	ImportPath string // of build events
	Test       string
	Output     string
}

// report shows a stream of test events short: a line per package, the output of
// what failed, and at the end what failed, what was left out and why, and the
// counts. Subtests count as tests.
type report struct {
	out     io.Writer
	rest    []byte              // the start of a line whose end is still to come
	output  map[string][]string // lines of tests and packages still open, by key
	broken  map[string]bool     // packages that have told of their failure by a test
	failed  []string            // names of failed tests, and of packages without one
	skipped map[string][]string // reason to the tests that gave it
	count   struct{ pass, skip int }
}

func newReport(out io.Writer) *report {
	return &report{out: out, output: map[string][]string{}, broken: map[string]bool{}, skipped: map[string][]string{}}
}

// Write takes the stream in pieces of any size.
func (r *report) Write(p []byte) (int, error) {
	r.rest = append(r.rest, p...)
	for {
		line, rest, found := bytes.Cut(r.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		r.line(line)
		r.rest = bytes.Clone(rest)
	}
}

func (r *report) line(line []byte) {
	var e testEvent
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		fmt.Fprintf(r.out, "%s\n", line) // not of the test runner: show it as it is
		return
	}
	key := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		r.output[key] = append(r.output[key], e.Output)
		if e.Test == "" && summary.MatchString(e.Output) {
			fmt.Fprint(r.out, e.Output)
		}
	case "pass", "skip", "fail":
		if e.Test == "" {
			r.endPackage(e, r.output[key])
		} else {
			r.endTest(e, r.output[key])
		}
		delete(r.output, key)
	}
}

// summary matches the lines that plain `go test` prints of packages.
var summary = regexp.MustCompile(`^(ok|FAIL|\?|---)\s`)

func (r *report) endTest(e testEvent, lines []string) {
	name := e.Package + "." + e.Test
	switch e.Action {
	case "pass":
		r.count.pass++
	case "skip":
		r.count.skip++
		why := reason(lines)
		r.skipped[why] = append(r.skipped[why], name)
	case "fail":
		r.broken[e.Package] = true
		r.failed = append(r.failed, name)
		r.show(lines)
	}
}

// endPackage tells of a package that failed other than by a test: it did not
// build, it panicked, it ran out of time. What its open tests printed is shown too.
func (r *report) endPackage(e testEvent, lines []string) {
	if e.Action != "fail" || r.broken[e.Package] {
		return
	}
	r.failed = append(r.failed, e.Package)
	for _, key := range slices.Sorted(maps.Keys(r.output)) {
		if pkg, test, _ := strings.Cut(key, " "); pkg == e.Package && test != "" {
			r.show(r.output[key])
			delete(r.output, key)
		}
	}
	r.show(slices.DeleteFunc(slices.Clone(lines), summary.MatchString))
}

// noise are the lines about the course of a test, which only -v shows.
var noise = regexp.MustCompile(`^=== (RUN|PAUSE|CONT|NAME)\s`)

func (r *report) show(lines []string) {
	for _, line := range lines {
		if !noise.MatchString(line) {
			fmt.Fprint(r.out, line)
		}
	}
}

// place is the file and line in front of what a test logs.
var place = regexp.MustCompile(`^\s+\S+\.go:\d+: `)

// reason finds what the test said when it skipped itself: its last line of log.
func reason(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if at := place.FindString(line); at != "" {
			return strings.TrimSpace(line[len(at):])
		}
	}
	return "no reason given"
}

// close prints the summary and tells whether the tests passed; that no test ran
// is a failure.
func (r *report) close() bool {
	if len(r.rest) > 0 {
		r.line(r.rest)
	}
	for _, why := range slices.Sorted(maps.Keys(r.skipped)) {
		tests := r.skipped[why]
		fmt.Fprintf(r.out, "\nLeft out, %d tests: %s\n", len(tests), why)
		for _, name := range tests[:min(len(tests), shownSkips)] {
			fmt.Fprintf(r.out, "  %s\n", name)
		}
		if more := len(tests) - shownSkips; more > 0 {
			fmt.Fprintf(r.out, "  … and %d more\n", more)
		}
	}
	if len(r.failed) > 0 {
		fmt.Fprintf(r.out, "\nFailed:\n  %s\n", strings.Join(r.failed, "\n  "))
	}
	ran := r.count.pass + len(r.failed)
	if ran == 0 {
		fmt.Fprintln(r.out, "\nNo test ran.")
	}
	fmt.Fprintf(r.out, "\n%d passed, %d failed, %d skipped\n", r.count.pass, len(r.failed), r.count.skip)
	return ran > 0 && len(r.failed) == 0
}

// shownSkips is how many left-out tests are named per reason.
const shownSkips = 5
