package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// summarise feeds the lines to a report, in small pieces, as a pipe may.
func summarise(t *testing.T, lines string) (string, bool) {
	t.Helper()
	var out bytes.Buffer
	r := newReport(&out)
	for piece := range slices.Chunk([]byte(lines), 7) {
		if _, err := r.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	ok := r.close()
	return out.String(), ok
}

const passing = `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestOne"}
{"Action":"output","Package":"m/a","Test":"TestOne","Output":"=== RUN   TestOne\n"}
{"Action":"output","Package":"m/a","Test":"TestOne","Output":"    a_test.go:3: chatter\n"}
{"Action":"pass","Package":"m/a","Test":"TestOne","Elapsed":0.1}
{"Action":"output","Package":"m/a","Test":"TestTwo/postgres","Output":"    a_test.go:9: PostgreSQL not available: run make test\n"}
{"Action":"output","Package":"m/a","Test":"TestTwo/postgres","Output":"--- SKIP: TestTwo/postgres (0.00s)\n"}
{"Action":"skip","Package":"m/a","Test":"TestTwo/postgres","Elapsed":0}
{"Action":"pass","Package":"m/a","Test":"TestTwo","Elapsed":0}
{"Action":"output","Package":"m/a","Output":"PASS\n"}
{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t0.01s\n"}
{"Action":"pass","Package":"m/a","Elapsed":0.01}
`

func TestReportOfASuccessIsShort(t *testing.T) {
	t.Parallel()
	got, ok := summarise(t, passing)
	want := "ok  \tm/a\t0.01s\n\nLeft out, 1 tests: PostgreSQL not available: run make test\n  m/a.TestTwo/postgres\n\n2 passed, 0 failed, 1 skipped\n"
	if !ok || got != want {
		t.Errorf("%v, got\n%s\nwant\n%s", ok, got, want)
	}
}

func TestReportShowsWhatFailed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lines string
		want  []string
	}{
		"a test": {`{"Action":"output","Package":"m/b","Test":"TestBad","Output":"=== RUN   TestBad\n"}
{"Action":"output","Package":"m/b","Test":"TestBad","Output":"    b_test.go:7: got 1; want 2\n"}
{"Action":"fail","Package":"m/b","Test":"TestBad"}
{"Action":"output","Package":"m/b","Output":"FAIL\tm/b\t0.01s\n"}
{"Action":"fail","Package":"m/b"}
`, []string{"got 1; want 2", "FAIL\tm/b", "Failed:\n  m/b.TestBad\n", "2 passed, 1 failed, 1 skipped"}},
		"a build": {`{"ImportPath":"m/b","Action":"build-output","Output":"b.go:1:2: undefined: x\n"}
{"Action":"output","Package":"m/b","Output":"FAIL\tm/b [build failed]\n"}
{"Action":"fail","Package":"m/b","FailedBuild":"m/b"}
`, []string{"undefined: x", "Failed:\n  m/b\n", "2 passed, 1 failed"}},
		"a panic": {`{"Action":"output","Package":"m/b","Test":"TestHang","Output":"    b_test.go:4: waiting\n"}
{"Action":"output","Package":"m/b","Output":"panic: test timed out after 1s\n"}
{"Action":"fail","Package":"m/b"}
`, []string{"waiting", "test timed out", "Failed:\n  m/b\n"}},
		"something else": {"go: no such tool\n", []string{"go: no such tool\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := summarise(t, passing+test.lines)
			if ok != (name == "something else") {
				t.Errorf("passed: %v", ok)
			}
			for _, part := range test.want {
				if !strings.Contains(got, part) {
					t.Errorf("lacks %q:\n%s", part, got)
				}
			}
			if strings.Contains(got, "=== RUN") || strings.Contains(got, "chatter") {
				t.Errorf("shows noise:\n%s", got)
			}
		})
	}
}

func TestNoTestIsAFailure(t *testing.T) {
	t.Parallel()
	got, ok := summarise(t, `{"Action":"output","Package":"m/a","Output":"?   \tm/a\t[no test files]\n"}`)
	if ok || !strings.Contains(got, "No test ran.") || !strings.HasSuffix(got, "\n0 passed, 0 failed, 0 skipped\n") {
		t.Errorf("%v, got %q", ok, got)
	}
}
