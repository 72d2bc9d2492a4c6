package event

import "github.com/switchyard-dev/switchyard/id"

// Context is a canonical runtime context: the directory where something
// happened and, where it is not the local one, the workspace. It is the
// "context" member of answers and events.
type Context struct {
	Directory   string       `json:"directory" doc:"Absolute canonical directory; empty for events of the whole server."`
	WorkspaceID id.Workspace `json:"workspaceID,omitempty"`
}

// Key gives the context key that clients use: "<workspaceID or local>:<directory>".
func (c Context) Key() string {
	if c.WorkspaceID == "" {
		return "local:" + c.Directory
	}
	return string(c.WorkspaceID) + ":" + c.Directory
}
