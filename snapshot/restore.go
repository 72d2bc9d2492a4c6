package snapshot

import (
	"context"
	iofs "io/fs"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store/db"
)

// Skipped is a file that was left alone.
type Skipped struct {
	File   string `json:"file" doc:"Absolute path."`
	Reason string `json:"reason" enum:"conflict,too_large,not_a_file,unreadable,too_many,expired,failed" doc:"conflict: it is not what the agent left, so somebody else changed it."`
}

// Undo is a file with what it should be and what it may be replaced from.
type Undo struct {
	Path string    `json:"path"`
	From fileState `json:"from"`
	To   fileState `json:"to"`
}

// Plan gives what undoing the changes from a message of a session on would do, in
// its calls from seq on, or from one part of that message on. What is not covered
// is told.
func (s *Service) Plan(ctx context.Context, ses id.Session, seq int64, part id.Part) ([]Undo, []Skipped, error) {
	rows, err := s.rows(ctx, ses)
	if err != nil {
		return nil, nil, err
	}
	first := int64(-1)
	for _, r := range rows {
		if part == "" && r.MessageSeq >= seq || part != "" && (r.MessageSeq > seq || r.PartID == string(part)) {
			first = r.Ord
			break
		}
	}
	undo, skipped := []Undo{}, []Skipped{}
	for _, n := range net(rows, func(r db.FileChange) bool { return first >= 0 && r.Ord >= first }) {
		switch {
		case n.reason != "":
			skipped = append(skipped, Skipped{File: n.path, Reason: n.reason})
		case n.pre != n.post:
			undo = append(undo, Undo{Path: n.path, From: n.post, To: n.pre})
		}
	}
	return undo, skipped, nil
}

// Reverse gives the undoing of what was undone.
func Reverse(list []Undo) []Undo {
	out := make([]Undo, len(list))
	for i, u := range list {
		out[i] = Undo{Path: u.Path, From: u.To, To: u.From}
	}
	return out
}

// Apply makes each file what it should be, if it is what it may be replaced from.
// A file that is as it should be already counts as done, so that an undoing which
// a crash cut off can be done again.
func (s *Service) Apply(ctx context.Context, e env.Environment, list []Undo) (done []string, skipped []Skipped) {
	done, skipped = []string{}, []Skipped{}
	for _, u := range list {
		reason := "failed"
		if ctx.Err() == nil {
			reason = s.apply(e, u)
		}
		if reason == "" {
			done = append(done, u.Path)
		} else {
			skipped = append(skipped, Skipped{File: u.Path, Reason: reason})
		}
	}
	return done, skipped
}

// apply gives why a file was left alone.
func (s *Service) apply(e env.Environment, u Undo) (reason string) {
	now, _ := s.keep(e, u.Path)
	if now.Reason != "" {
		return "conflict"
	}
	at := stateOf(now.Hash, int64(now.Mode))
	switch at {
	case u.To:
		return ""
	case u.From:
	default:
		return "conflict"
	}
	data, err := s.content(u.To)
	if err != nil {
		return Expired
	}
	err = opened(e, u.Path, func(f env.Files) error {
		if at.Hash != "" && (u.To.Hash == "" || at.Mode != u.To.Mode) {
			// A file that is replaced keeps its mode, and this one shall not.
			if err := f.Remove(u.Path); err != nil || u.To.Hash == "" {
				return err
			}
		}
		return f.WriteFile(u.Path, data, iofs.FileMode(u.To.Mode))
	})
	if err != nil {
		s.log.Warn("undoing a change", "path", u.Path, "error", err)
		return "failed"
	}
	return ""
}
