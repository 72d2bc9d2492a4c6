package vcs

import "github.com/switchyard-dev/switchyard/event"

// BranchChange says what is checked out now.
type BranchChange struct {
	Branch string `json:"branch,omitempty" doc:"Absent when HEAD is detached or the repository is gone."`
}

// BranchUpdated is published when another branch or commit was checked out in a
// context that somebody follows. It is a hint, so it is not kept: a stream that
// begins later is told when the branch is not the one last told.
var BranchUpdated = event.Define[BranchChange]("vcs.branch.updated", event.Ephemeral,
	event.Invalidates("vcs.get", "vcs.status", "vcs.diff"))
