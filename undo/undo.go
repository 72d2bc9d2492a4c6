// Package undo takes the changes of files back that a session's calls made, and
// brings them again. It is three-way: a file that is not as the agent left it was
// changed by somebody else and is left alone. Git's own files are never touched.
package undo

import (
	"context"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/session"
	"github.com/switchyard-dev/switchyard/snapshot"
)

// Service undoes. It is safe for concurrent use.
type Service struct {
	Sessions  *session.Service
	Snapshots *snapshot.Service
}

// Result says what became of the files.
type Result struct {
	Session  session.Session    `json:"session"`
	Reverted []string           `json:"reverted" doc:"Absolute paths that are as they should be now."`
	Skipped  []snapshot.Skipped `json:"skipped"`
}

// Revert undoes the changes from a message on, or from one part of it on. Where
// something is undone already, that is brought back first: the boundary moves. It
// is stored before the first file is touched, so that Unrevert or another Revert
// completes what a crash cut off. A running turn is session_busy, an unknown message
// message_not_found.
func (s *Service) Revert(ctx context.Context, e env.Environment, ses id.Session, msg id.Message, part id.Part) (Result, error) {
	seq, _, err := s.Sessions.Place(ctx, ses, msg)
	if err != nil {
		return Result{}, err
	}
	if err := s.Sessions.TreeIdle(ctx, ses); err != nil {
		return Result{}, err
	}
	row, err := s.Sessions.Get(ctx, ses)
	if err != nil {
		return Result{}, err
	}
	if row.Revert != nil && (row.Revert.MessageID != msg || row.Revert.PartID != part) {
		if _, err := s.Unrevert(ctx, e, ses); err != nil {
			return Result{}, err
		}
	}
	plan, skipped, err := s.Snapshots.Plan(ctx, ses, seq, part)
	if err != nil {
		return Result{}, err
	}
	mark := session.Revert{MessageID: msg, PartID: part, Files: []string{}}
	for _, u := range plan {
		mark.Files = append(mark.Files, u.Path)
	}
	if _, err := s.Sessions.SetRevert(ctx, ses, &mark, plan); err != nil {
		return Result{}, err
	}
	done, left := s.Snapshots.Apply(ctx, e, plan)
	mark.Files = done
	out := Result{Reverted: done, Skipped: append(skipped, left...)}
	out.Session, err = s.Sessions.SetRevert(context.WithoutCancel(ctx), ses, &mark, only(plan, done))
	return out, err
}

// Unrevert brings back what was undone; where nothing was, nothing happens.
func (s *Service) Unrevert(ctx context.Context, e env.Environment, ses id.Session) (Result, error) {
	if err := s.Sessions.TreeIdle(ctx, ses); err != nil {
		return Result{}, err
	}
	row, err := s.Sessions.Get(ctx, ses)
	if err != nil {
		return Result{}, err
	}
	out := Result{Session: row.Session, Reverted: []string{}, Skipped: []snapshot.Skipped{}}
	var plan []snapshot.Undo
	if ok, err := row.ReadRevert(&plan); err != nil || !ok {
		return out, err
	}
	out.Reverted, out.Skipped = s.Snapshots.Apply(ctx, e, snapshot.Reverse(plan))
	out.Session, err = s.Sessions.SetRevert(context.WithoutCancel(ctx), ses, nil, nil)
	return out, err
}

func only(plan []snapshot.Undo, paths []string) []snapshot.Undo {
	in := map[string]bool{}
	for _, p := range paths {
		in[p] = true
	}
	out := []snapshot.Undo{}
	for _, u := range plan {
		if in[u.Path] {
			out = append(out, u)
		}
	}
	return out
}
