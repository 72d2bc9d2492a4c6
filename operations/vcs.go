package operations

import (
	"context"
	"io"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/runtime"
	"github.com/switchyard-dev/switchyard/vcs"
)

// VCSGet tells what is checked out.
var VCSGet = op.New(op.Spec{
	Name: "vcs.get", Method: "GET", Path: "/api/vcs", Summary: "VCS metadata.",
	Doc: "Looks at no file of the work tree. Outside of git the type is none.",
}, func(ctx context.Context, rt *runtime.Request, _ Empty) (vcs.Info, error) {
	return rt.Parts().VCS.Get(ctx)
})

// VCSStatus lists changed files.
var VCSStatus = op.New(op.Spec{
	Name: "vcs.status", Method: "GET", Path: "/api/vcs/status", Summary: "Changed files.",
	Doc: "What git status says of the whole work tree, with the lines that git diff counts. The index is neither written nor waited for, " +
		"and nothing that the repository configures is run; clean filters (git-lfs among them) are off, so a touched file under one shows as modified.",
}, func(ctx context.Context, rt *runtime.Request, _ Empty) ([]vcs.Change, error) {
	return rt.Parts().VCS.Status(ctx)
})

// VCSDiffInput chooses a diff.
type VCSDiffInput struct {
	Format  string `json:"format,omitempty" enum:"json,patch" doc:"Form of the diff; default json."`
	Mode    string `json:"mode,omitempty" enum:"worktree,default" doc:"What to compare the work tree with: HEAD (worktree), or the merge base with the default branch (default)."`
	Context *int   `json:"context,omitempty" minimum:"0" maximum:"1000000" doc:"Unchanged lines around a change; default 3."`
}

// VCSDiff shows how the work tree differs from its base.
var VCSDiff = op.New(op.Spec{
	Name: "vcs.diff", Method: "GET", Path: "/api/vcs/diff", Summary: "Diff for the runtime directory.",
	Doc: "Untracked files are included. In JSON, lines are left out beyond 512 KiB of a file and 8 MiB in all, which `truncated` tells. " +
		"A patch is sent whole, as it is made; its paths are relative to the work tree's top, and vcs.patch takes it.",
	Produces: []string{"text/x-diff"},
	Values:   map[string]map[string]string{"mode": {"git": "worktree", "working": "worktree", "branch": "default"}},
	Example:  VCSDiffInput{Mode: "default"},
}, func(ctx context.Context, rt *runtime.Request, in VCSDiffInput) (op.Alt[[]vcs.FileDiff, op.Raw], error) {
	o := vcs.DiffOptions{Mode: in.Mode, Context: vcs.DefaultContext}
	if in.Context != nil {
		o.Context = *in.Context
	}
	if in.Format == "patch" {
		return op.Alt[[]vcs.FileDiff, op.Raw]{Other: &op.Raw{
			Type: "text/x-diff",
			Write: func(ctx context.Context, w io.Writer) error {
				return rt.Parts().VCS.WritePatch(ctx, o, w)
			},
		}}, nil
	}
	diffs, err := rt.Parts().VCS.Diff(ctx, o)
	return op.Alt[[]vcs.FileDiff, op.Raw]{Value: diffs}, err
})

// VCSPatchInput is a patch.
type VCSPatchInput struct {
	Patch string `json:"patch" minLength:"1" doc:"A patch as git diff writes it, with paths relative to the work tree's top."`
}

// VCSPatch applies a patch.
var VCSPatch = op.New(op.Spec{
	Name: "vcs.patch", Method: "POST", Path: "/api/vcs/patch", Summary: "Apply a patch to the runtime directory.",
	Doc: "All of it or nothing. The index is left alone. Paths outside, in .git or through links are refused. " +
		"A conflict names the file and, where it is one, the hunk. While the index is locked the patch is refused with the lock's age in milliseconds; " +
		"the lock is never removed. Without git, hunks must stand exactly where the patch says.",
	BodyLimit: PromptBody,
	Codes:     []fault.Code{fault.PathOutside, fault.PatchConflict, fault.VCSLocked},
	Example:   VCSPatchInput{Patch: "--- a/hello.txt\n+++ b/hello.txt\n@@ -1 +1 @@\n-hello\n+hello, world\n"},
}, func(ctx context.Context, rt *runtime.Request, in VCSPatchInput) (vcs.Patched, error) {
	return rt.Parts().VCS.Patch(ctx, in.Patch)
})
