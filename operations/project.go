package operations

import (
	"context"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/runtime"
)

// ProjectList lists projects.
var ProjectList = op.New(op.Spec{
	Name: "project.list", Method: "GET", Path: "/api/project", Summary: "List projects known to this server.",
	Doc: "The ones used last come first. A project is one clone of a repository on this server, with all its work trees, or a directory without git.",
}, func(ctx context.Context, s *runtime.Server, _ Empty) ([]project.Project, error) {
	return s.Projects.List(ctx)
})

// ProjectInput names a project.
type ProjectInput struct {
	ProjectID string `json:"projectID"`
}

// projectOf reads an id; a malformed one is like an unknown one.
func projectOf(text string) (id.Project, error) {
	if p, ok := id.Parse[id.Project](text); ok {
		return p, nil
	}
	return "", fault.New(fault.ProjectNotFound, "there is no project %q", text).With("projectID", text)
}

// ProjectGet reads a project.
var ProjectGet = op.New(op.Spec{
	Name: "project.get", Method: "GET", Path: "/api/project/{projectID}", Summary: "Get project metadata.",
	Codes: []fault.Code{fault.ProjectNotFound},
}, func(ctx context.Context, s *runtime.Server, in ProjectInput) (project.Project, error) {
	p, err := projectOf(in.ProjectID)
	if err != nil {
		return project.Project{}, err
	}
	return s.Projects.Get(ctx, p)
})

// ProjectUpdateInput changes a project; absent fields stay.
type ProjectUpdateInput struct {
	ProjectID string                    `json:"projectID"`
	Name      op.Opt[string]            `json:"name,omitzero" maxLength:"200" doc:"null removes it."`
	Icon      op.Opt[string]            `json:"icon,omitzero" maxLength:"65536" doc:"A character, a URL or a data: URL; null removes it."`
	Commands  op.Opt[[]project.Command] `json:"commands,omitzero" maxItems:"100" doc:"Replaces the commands; null removes them. The one named start runs in each new work tree."`
}

// ProjectUpdate changes a project's metadata.
var ProjectUpdate = op.New(op.Spec{
	Name: "project.update", Method: "PATCH", Path: "/api/project/{projectID}", Summary: "Update project metadata.",
	Codes:   []fault.Code{fault.ProjectNotFound},
	Example: ProjectUpdateInput{Name: op.Some("Switchyard")},
}, func(ctx context.Context, s *runtime.Server, in ProjectUpdateInput) (project.Project, error) {
	p, err := projectOf(in.ProjectID)
	if err != nil {
		return project.Project{}, err
	}
	var c project.Change
	if in.Name.Set {
		c.Name = &in.Name.Value
	}
	if in.Icon.Set {
		c.Icon = &in.Icon.Value
	}
	if in.Commands.Set {
		c.Commands = &in.Commands.Value
	}
	return s.Projects.Update(ctx, p, c)
})

// ProjectDirectories lists where a project is.
var ProjectDirectories = op.New(op.Spec{
	Name: "project.directories", Method: "GET", Path: "/api/project/{projectID}/directory",
	Summary: "List the directories of a project that the server has met, the main one first; workspaces are listed by workspace.list.",
	Codes:   []fault.Code{fault.ProjectNotFound},
}, func(ctx context.Context, s *runtime.Server, in ProjectInput) ([]project.Known, error) {
	p, err := projectOf(in.ProjectID)
	if err != nil {
		return nil, err
	}
	return s.Projects.Directories(ctx, p)
})
