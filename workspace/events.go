package workspace

import (
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/id"
)

// Info is the payload of workspace.created, .updated, .ready and .failed.
type Info struct {
	WorkspaceID id.Workspace `json:"workspaceID"`
	Info        Workspace    `json:"info"`
}

// Progress is the payload of workspace.progress.
type Progress struct {
	WorkspaceID id.Workspace `json:"workspaceID"`
	Message     string       `json:"message" doc:"A line that says what is being done."`
}

// Removed is the payload of workspace.deleted.
type Removed struct {
	WorkspaceID id.Workspace `json:"workspaceID"`
	Leftovers   []string     `json:"leftovers" doc:"What was not removed: directories, and branches as branch:<name>."`
}

// The events of workspaces belong to no directory and reach every stream.
var (
	Created  = event.Define[Info]("workspace.created")
	Updated  = event.Define[Info]("workspace.updated")
	BeReady  = event.Define[Info]("workspace.ready")
	BeFailed = event.Define[Info]("workspace.failed")
	Deleted  = event.Define[Removed]("workspace.deleted")
	// Going tells what a driver is doing; it is not kept.
	Going = event.Define[Progress]("workspace.progress", event.Ephemeral)
)
