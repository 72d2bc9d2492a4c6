package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// list reads statements that run one after another. Like all readers of
// statements it takes where the shell may be, and gives where it may be after
// success and after failure: "cd x && rm y" and "cd x; rm y" differ in that.
func (r *reader) list(stmts []*syntax.Stmt, at place) (ok, failed place) {
	ok, failed = at, at
	if r.level == maxLevel {
		r.hide("commands nested too deeply")
		return nil, nil
	}
	r.level++
	defer func() { r.level-- }()
	for _, s := range stmts {
		ok, failed = r.stmt(s, ok.or(failed))
	}
	return ok, failed
}

func (r *reader) stmt(s *syntax.Stmt, at place) (ok, failed place) {
	for _, redirect := range s.Redirs {
		r.redirect(redirect, at)
	}
	ok, failed = r.cmd(s.Cmd, at)
	switch {
	case s.Background || s.Coprocess || s.Disown:
		return at, at
	case s.Negated:
		return failed, ok
	}
	return ok, failed
}

func (r *reader) cmd(c syntax.Command, at place) (ok, failed place) {
	switch c := c.(type) {
	case nil:
		return at, at
	case *syntax.CallExpr:
		return r.call(c, at)
	case *syntax.Block:
		return r.list(c.Stmts, at)
	case *syntax.Subshell:
		r.list(c.Stmts, at)
		return at, at
	case *syntax.BinaryCmd:
		return r.binary(c, at)
	case *syntax.IfClause:
		return r.branch(c, at)
	case *syntax.CaseClause:
		return r.cases(c, at)
	case *syntax.WhileClause:
		return r.loop(append(c.Cond[:len(c.Cond):len(c.Cond)], c.Do...), at)
	case *syntax.ForClause:
		r.iterate(c, at)
		return r.loop(c.Do, at)
	case *syntax.TimeClause:
		if c.Stmt == nil {
			return at, at
		}
		return r.stmt(c.Stmt, at)
	case *syntax.TestClause, *syntax.DeclClause:
		// The POSIX reading takes these as commands and judges them.
		r.substitutions(c, at)
		return at, at
	case *syntax.FuncDecl:
		r.hide("a function definition")
		r.stmt(c.Body, at)
		return at, at
	}
	r.hide("syntax that not every shell has")
	r.substitutions(c, at)
	return at, at
}

func (r *reader) binary(c *syntax.BinaryCmd, at place) (ok, failed place) {
	if c.Op != syntax.AndStmt && c.Op != syntax.OrStmt {
		r.stmt(c.X, at)
		r.stmt(c.Y, at)
		return at, at
	}
	okX, failedX := r.stmt(c.X, at)
	if c.Op == syntax.AndStmt {
		okY, failedY := r.stmt(c.Y, okX)
		return okY, failedX.or(failedY)
	}
	okY, failedY := r.stmt(c.Y, failedX)
	return okX.or(okY), failedY
}

func (r *reader) branch(c *syntax.IfClause, at place) (ok, failed place) {
	yes, no := r.list(c.Cond, at)
	okThen, failedThen := r.list(c.Then, yes)
	after := okThen.or(failedThen)
	if c.Else == nil {
		after = after.or(no)
		return after, after
	}
	okElse, failedElse := r.branch(c.Else, no)
	after = after.or(okElse).or(failedElse)
	return after, after
}

func (r *reader) cases(c *syntax.CaseClause, at place) (ok, failed place) {
	r.value(c.Word, at)
	after := at
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			r.value(p, at)
		}
		ok, failed := r.list(item.Stmts, at)
		after = after.or(ok).or(failed)
	}
	return after, after
}

func (r *reader) loop(body []*syntax.Stmt, at place) (ok, failed place) {
	ok, failed = r.list(body, at)
	after := at.or(ok).or(failed)
	if at != nil && !after.same(at) {
		r.hide("a change of directory inside a loop")
		after = nil
	}
	return after, after
}

func (r *reader) iterate(c *syntax.ForClause, at place) {
	words, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		r.hide("syntax that not every shell has")
		r.substitutions(c.Loop, at)
		return
	}
	r.variable(words.Name.Value, false)
	for _, w := range words.Items {
		r.value(w, at)
	}
}

// redirect judges one redirection. Only copies of descriptors and /dev/null are
// without effect on files.
func (r *reader) redirect(d *syntax.Redirect, at place) {
	if d.Hdoc != nil {
		r.substitutions(d.Hdoc, at)
	}
	w := r.word(d.Word, at)
	switch d.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		r.hide("input written in the text")
		return
	case syntax.DplIn, syntax.DplOut:
		if w.literal && w.text != "" && strings.Trim(w.text, "0123456789-") == "" {
			return
		}
	}
	if w.literal && w.text == "/dev/null" {
		return
	}
	r.hide("a redirection to or from a file")
	r.target(w, at, false)
}

// substitutions reads the commands inside a node that is no command itself.
func (r *reader) substitutions(n syntax.Node, at place) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			r.hide("a command substitution")
			r.list(n.Stmts, at)
			return false
		case *syntax.ProcSubst:
			r.hide("a process substitution")
			r.list(n.Stmts, at)
			return false
		case *syntax.ParamExp:
			r.expansion(n)
		case *syntax.ArithmExp:
			if !number(n.X, 0) {
				r.hide("an expansion that evaluates")
			}
		}
		return true
	})
}
