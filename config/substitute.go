package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var placeholder = regexp.MustCompile(`\{(env|file):([^{}]*)\}`)

// filler replaces {env:NAME} and {file:path} in the strings of one file. What
// comes in is not looked at again.
type filler struct {
	report  *report
	project bool
	env     func(name string) (string, bool)
	// inside tells that an absolute path is in the project; read gives the text.
	inside func(path string) bool
	read   func(path string) (string, error)
	// directory is what relative paths are relative to; home is for ~.
	directory, home string
}

func (f *filler) fill(n *node, path []string) {
	switch n.kind {
	case kindObject:
		for _, m := range n.members {
			f.fill(m.value, append(path[:len(path):len(path)], m.key))
		}
	case kindArray:
		for _, item := range n.items {
			f.fill(item, path)
		}
	case kindString:
		if !strings.Contains(n.text, "{env:") && !strings.Contains(n.text, "{file:") {
			return
		}
		n.text = placeholder.ReplaceAllStringFunc(n.text, func(whole string) string {
			n.filled = true
			return f.one(n, path, whole)
		})
	case kindNull, kindBool, kindNumber:
	}
}

func (f *filler) one(n *node, path []string, whole string) string {
	parts := placeholder.FindStringSubmatch(whole)
	name := strings.TrimSpace(parts[2])
	if parts[1] == "file" {
		return f.file(n, path, name)
	}
	if f.project && !mayHoldSecrets(path) {
		f.report.warnf(n.at, "{env:%s} is left empty: project files may use variables only for providers, servers and choices of a model or shell", name)
		return ""
	}
	if f.project && strings.HasPrefix(name, "SWITCHYARD_") {
		f.report.warnf(n.at, "{env:%s} is left empty: the server's own variables are not for project files", name)
		return ""
	}
	value, ok := f.env(name)
	if !ok {
		f.report.warnf(n.at, "the environment variable %s is not set", name)
	}
	return value
}

func (f *filler) file(n *node, path []string, name string) string {
	full := expandHome(name, f.home)
	if !filepath.IsAbs(full) {
		full = filepath.Join(f.directory, full)
	}
	if f.project && !f.inside(full) && !mayHoldSecrets(path) {
		f.report.warnf(n.at, "{file:%s} is left empty: it is outside of the project", name)
		return ""
	}
	text, err := f.read(full)
	if err != nil {
		f.report.errorf(n.at, "{file:%s} cannot be read: %s", name, reason(err))
		return ""
	}
	return strings.TrimSpace(text)
}

// mayHoldSecrets reports whether the value at path of a project file may take
// what is outside of the project. Other values go into prompts, and a cloned
// repository must not bring the owner's secrets to where a model reads them. Of
// what is listed here, mergeProvider and trust in the directory take care.
func mayHoldSecrets(path []string) bool {
	switch path[0] {
	case "provider", "mcp", "lsp", "formatter":
		return true
	}
	return len(path) == 1 && slices.Contains([]string{"model", "small_model", "default_agent", "shell"}, path[0])
}

// reason is an error in words that name no path twice.
func reason(err error) string {
	switch {
	case absent(err):
		return "there is no such file"
	case outside(err):
		return "it leads out of the project"
	case unfit(err):
		return "it is not a regular file"
	case errors.Is(err, errTooLarge):
		return fmt.Sprintf("it is larger than %d bytes", maxFile)
	}
	return "it is not readable"
}
