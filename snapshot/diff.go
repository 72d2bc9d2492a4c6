package snapshot

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store/db"
)

// maxPatch bounds the patch of one file in an answer, in bytes; maxDiffed the
// files whose lines are compared at all.
const (
	maxPatch  = 512 << 10
	maxDiffed = 1 << 20
)

// FileDiff is what the calls of a session, or of one turn, changed in a file.
type FileDiff struct {
	File      string `json:"file" doc:"Relative to the session's directory; may begin with ../."`
	Status    string `json:"status" enum:"added,modified,deleted"`
	Additions int    `json:"additions" doc:"Lines."`
	Deletions int    `json:"deletions"`
	Binary    bool   `json:"binary,omitempty"`
	Patch     string `json:"patch,omitempty"`
	Truncated bool   `json:"truncated,omitempty" doc:"The lines were not compared, or not all are in the patch."`
	Uncovered string `json:"uncovered,omitempty" enum:"too_large,not_a_file,unreadable,too_many,expired" doc:"Why nothing more is known of the file."`
}

// Summary counts a session's changes.
type Summary struct {
	Additions int `json:"additions"`
	Deletions int `json:"deletions"`
	Files     int `json:"files"`
}

// Summarize counts.
func Summarize(diffs []FileDiff) Summary {
	s := Summary{Files: len(diffs)}
	for _, d := range diffs {
		s.Additions += d.Additions
		s.Deletions += d.Deletions
	}
	return s
}

// Query selects changes of a session.
type Query struct {
	SessionID id.Session
	// TurnID limits them to one turn; "" is the whole session.
	TurnID id.Turn
	// Directory is what names are relative to.
	Directory string
	// Patch asks for the lines.
	Patch bool
}

// Diff sums changes up: of each file its state before the first against that after
// the last, by name. Files that are as they were are left out.
func (s *Service) Diff(ctx context.Context, q Query) ([]FileDiff, error) {
	rows, err := s.rows(ctx, q.SessionID)
	if err != nil {
		return nil, err
	}
	out := []FileDiff{}
	for _, n := range net(rows, func(r db.FileChange) bool { return q.TurnID == "" || r.TurnID == string(q.TurnID) }) {
		if n.reason == "" && n.pre == n.post {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		out = append(out, s.diff(n, q))
	}
	return out, nil
}

// fileState is a kept state of a file; the zero value is no file.
type fileState struct {
	Hash string `json:"hash"`
	Mode uint32 `json:"mode"`
}

// netChange is what several changes of a file make together.
type netChange struct {
	path      string
	pre, post fileState
	reason    string
}

// net sums the chosen rows up, in the order of the files' first change.
func net(rows []db.FileChange, chosen func(db.FileChange) bool) []*netChange {
	var out []*netChange
	by := map[string]*netChange{}
	for _, r := range rows {
		if !chosen(r) {
			continue
		}
		n := by[r.Path]
		if n == nil {
			n = &netChange{path: r.Path, pre: stateOf(r.PreHash, r.PreMode)}
			by[r.Path] = n
			out = append(out, n)
		}
		n.post = stateOf(r.PostHash, r.PostMode)
		if r.Reason != "" {
			n.reason = r.Reason
		}
	}
	return out
}

func stateOf(hash string, mode int64) fileState {
	if hash == "" {
		return fileState{}
	}
	return fileState{Hash: hash, Mode: uint32(mode)}
}

func (s *Service) diff(n *netChange, q Query) FileDiff {
	name := n.path
	if rel, err := filepath.Rel(q.Directory, n.path); err == nil {
		name = filepath.ToSlash(rel)
	}
	d := FileDiff{File: name, Status: "modified", Uncovered: n.reason}
	if n.reason != "" {
		return d
	}
	switch {
	case n.pre.Hash == "":
		d.Status = "added"
	case n.post.Hash == "":
		d.Status = "deleted"
	}
	before, err := s.content(n.pre)
	after, err2 := s.content(n.post)
	if err != nil || err2 != nil {
		d.Uncovered = Expired
		return d
	}
	d.Binary = bytes.IndexByte(before, 0) >= 0 || bytes.IndexByte(after, 0) >= 0
	if d.Binary {
		return d
	}
	if max(len(before), len(after)) > maxDiffed {
		d.Truncated = true
		return d
	}
	for _, e := range udiff.Lines(string(before), string(after)) {
		d.Additions += lines(e.New)
		d.Deletions += lines(string(before[e.Start:e.End]))
	}
	if q.Patch {
		d.Patch = udiff.Unified("a/"+name, "b/"+name, string(before), string(after))
		if len(d.Patch) > maxPatch {
			d.Patch, d.Truncated = d.Patch[:strings.LastIndexByte(d.Patch[:maxPatch], '\n')+1], true
		}
	}
	return d
}

// content gives what a state holds; nothing for no file.
func (s *Service) content(st fileState) ([]byte, error) {
	if st.Hash == "" {
		return nil, nil
	}
	return s.objects.get(st.Hash)
}

func lines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}
