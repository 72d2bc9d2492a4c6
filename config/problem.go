package config

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/switchyard-dev/switchyard/fault"
)

// Severity tells errors, which make a directory's configuration unusable, from
// warnings, which do not.
type Severity string

// The severities of a Problem.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Position says where something stands. Line and Column begin at 1 and are 0
// where there is none; Column counts UTF-8 bytes. File is an absolute path, or
// the name of the environment variable that holds the text.
type Position struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// Source says which file a value comes from.
type Source struct {
	File string `json:"file"`
	Line int    `json:"line"`
}

// Problem is something wrong in a configuration file. Its message never holds a
// value of the file, since that might be a secret.
type Problem struct {
	Position
	Severity Severity `json:"severity" enum:"error,warning"`
	Message  string   `json:"message"`
}

// String is one line for terminals and logs.
func (p Problem) String() string {
	at := p.File
	if p.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d", at, p.Line, p.Column)
	}
	return fmt.Sprintf("%s: %s: %s", at, p.Severity, p.Message)
}

// report collects problems.
type report struct {
	problems []Problem
}

func (r *report) errorf(at Position, format string, args ...any) {
	r.problems = append(r.problems, Problem{at, SeverityError, fmt.Sprintf(format, args...)})
}

func (r *report) warnf(at Position, format string, args ...any) {
	r.problems = append(r.problems, Problem{at, SeverityWarning, fmt.Sprintf(format, args...)})
}

func (r *report) of(s Severity) []Problem {
	out := []Problem{}
	for _, p := range r.problems {
		if p.Severity == s && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// inOrder sorts problems of one file as they stand in it.
func inOrder(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// sorted gives errors, then warnings.
func (r *report) sorted() []Problem {
	return append(r.of(SeverityError), r.of(SeverityWarning)...)
}

// fault gives the config_invalid fault for the first error, nil for none. Its
// fields are path, line and column; its items list all errors.
func (r *report) fault() error {
	errs := r.of(SeverityError)
	if len(errs) == 0 {
		return nil
	}
	first := errs[0]
	e := fault.New(fault.ConfigInvalid, "%s", first.Message).With("path", first.File)
	if first.Line > 0 {
		e = e.With("line", first.Line).With("column", first.Column)
	}
	for _, p := range errs {
		e = e.At(fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column), "%s", p.Message)
	}
	return e
}
