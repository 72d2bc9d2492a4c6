package shell_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/tool/shell"
)

// stubs makes a PATH that holds nothing but commands which note their names and
// arguments.
func stubs(t *testing.T, names ...string) (bin string) {
	t.Helper()
	bin = t.TempDir()
	script := "#!/bin/sh\nprintf '%s\\0' \"${0##*/}${1+ }$*\" >> \"$STUB_LOG\"\n"
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

// ran gives what a real shell ran. What it leaves running in the background
// notes itself where nobody looks any more.
func ran(t *testing.T, sh, bin, text string) []string {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	cmd := exec.CommandContext(t.Context(), sh, "-c", text)
	cmd.Dir, cmd.Env = t.TempDir(), []string{"PATH=" + bin, "HOME=~", "STUB_LOG=" + log}
	_ = cmd.Run() // most texts fail in one way or another
	data, _ := os.ReadFile(log)
	return strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
}

func shells(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, name := range []string{"bash", "dash", "sh", "zsh"} {
		if p, err := exec.LookPath(name); err == nil {
			found = append(found, p)
		}
	}
	return found
}

// numbers are variables that are known to be numbers, not which.
var numbers = regexp.MustCompile(`\$[#?$!]`)

// Whatever a real shell runs of a text that is not opaque is in its reading.
// The texts are random rows of what shells find special.
func TestReadKnowsAllThatShellsRun(t *testing.T) {
	t.Parallel()
	bin := stubs(t, "a", "b", "c", "ab", "bc", "abc")
	tokens := []string{
		"a", "b", "c", "a", "b", " ", " ", " ", ";", "&", "|", "&&", "||", "\n", "'", `"`, `\`, "(", ")", "{", "}", "{ ", "; }",
		"$", "`", "#", "!", "=", "~", "*", "[", "]", "\t", "-", ",", "x=1", "$x", "if ", "; then ", "; fi", "else ", "while ", "do ",
		"done", "for x in ", "case a in ", "esac", ";;", "[[ ", " ]]", "((", "))", "$'", "$\"", "\\\n", "ab", "function ", "()", "time ", "\r",
	}
	rng := rand.New(rand.NewPCG(1, 2))
	all := shells(t)
	checked := 0
	for tries := 0; checked < realTexts && tries < 200*realTexts; tries++ {
		var b strings.Builder
		for range 1 + rng.IntN(12) {
			b.WriteString(tokens[rng.IntN(len(tokens))])
		}
		text := b.String()
		r := shell.Read(text, "/w")
		if len(r.Opaque) > 0 || !strings.ContainsAny(text, "abc") || numbers.MatchString(text) {
			continue
		}
		checked++
		for _, sh := range all {
			for _, line := range ran(t, sh, bin, text) {
				if line != "" && !slices.Contains(texts(r), strings.TrimSuffix(line, " ")) && !slices.Contains(texts(r), line) {
					t.Errorf("%s ran %q of %q: %q", sh, line, text, texts(r))
				}
			}
		}
	}
	if checked < realTexts {
		t.Errorf("only %d texts were checked", checked)
	}
}

const realTexts = 60
