package operations

import (
	"context"

	"github.com/switchyard-dev/switchyard/agent/definition"

	"github.com/switchyard-dev/switchyard/config"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/project"
	"github.com/switchyard-dev/switchyard/runtime"
	"github.com/switchyard-dev/switchyard/workspace"
)

// Health says how the server is. Without a token only Status is told.
type Health struct {
	Status  string          `json:"status" enum:"ok,degraded"`
	Version string          `json:"version,omitempty"`
	Epoch   uint32          `json:"epoch,omitempty" doc:"Names the store; another epoch means another store."`
	Store   *StoreHealth    `json:"store,omitempty"`
	Sandbox string          `json:"sandbox,omitempty" enum:"off,workspace,strict,unavailable" doc:"How tools are confined."`
	Limits  *runtime.Limits `json:"limits,omitempty"`
}

// StoreHealth says whether the store takes writes.
type StoreHealth struct {
	Engine string     `json:"engine" enum:"sqlite,postgres"`
	Code   fault.Code `json:"code,omitempty" doc:"Absent while all is well."`
}

// HealthGet says how the server is.
var HealthGet = op.New(op.Spec{
	Name: "health.get", Method: "GET", Path: "/api/health", Summary: "Whether the server works; more with a token.",
	Public: true, NoCursor: true,
}, func(_ context.Context, s *runtime.Server, _ Empty) (Health, error) {
	h := Health{Status: "ok"}
	trouble := s.StoreHealth()
	if trouble != nil {
		h.Status = "degraded"
	}
	if s.Principal.Name == "" {
		return h, nil
	}
	h.Version, h.Epoch, h.Sandbox = s.About.Version, s.About.Epoch, "off"
	h.Store = &StoreHealth{Engine: s.About.Engine, Code: fault.CodeOf(trouble)}
	limits := s.About.Limits
	h.Limits = &limits
	return h, nil
})

// Location is a resolved runtime context with what is known of it.
type Location struct {
	Directory   string               `json:"directory"`
	WorkspaceID id.Workspace         `json:"workspaceID,omitempty"`
	Workspace   *workspace.Workspace `json:"workspace,omitempty" doc:"The workspace whose root holds the directory, whether or not the hint names it."`
	Project     project.Project      `json:"project"`
	Default     string               `json:"default" doc:"Directory of the default runtime, used where no hint is given."`
	Home        string               `json:"home"`
	Roots       []string             `json:"roots" doc:"Directories that may be served; empty means all."`
	Root        string               `json:"root" doc:"Root of containment for the agent's tools: the top of the work tree, or the directory itself."`
	Trusted     bool                 `json:"trusted" doc:"Whether files of the directory may start programs; nothing does yet."`
	Watcher     string               `json:"watcher" enum:"off,on,degraded"`
}

// LocationGet tells which context a hint means.
var LocationGet = op.New(op.Spec{
	Name: "location.get", Method: "GET", Path: "/api/location", Summary: "The resolved runtime context, its project and the default.",
}, func(ctx context.Context, rt *runtime.Request, _ Empty) (Location, error) {
	projectID, err := rt.Project(ctx)
	if err != nil {
		return Location{}, err
	}
	p, err := rt.Projects.Get(ctx, projectID)
	if err != nil {
		return Location{}, err
	}
	where := rt.Location()
	in, err := rt.Workspaces.Containing(ctx, where.Directory)
	if err != nil {
		return Location{}, err
	}
	return Location{
		Workspace: in,
		Directory: where.Directory, WorkspaceID: where.WorkspaceID, Project: p, Default: rt.DefaultDirectory(), Home: rt.Home(),
		Roots: rt.Roots(), Root: rt.Place().Root, Watcher: "off",
	}, nil
})

// AgentList lists the agents of a context.
var AgentList = op.New(op.Spec{
	Name: "agent.list", Method: "GET", Path: "/api/agent", Summary: "Available agents.",
	Doc: "The default agent comes first, hidden ones come last.", Codes: []fault.Code{fault.ConfigInvalid},
}, func(ctx context.Context, rt *runtime.Request, _ Empty) ([]definition.Agent, error) {
	settings, err := rt.Parts().Settings(ctx)
	if err != nil {
		return nil, err
	}
	return definition.List(settings.Agents, settings.DefaultAgent), nil
})

// ConfigOutput is the resolved configuration with where each value is from.
type ConfigOutput struct {
	Config   op.JSON[map[string]any]  `json:"config" doc:"The merged configuration; secrets read ***."`
	Sources  map[string]config.Source `json:"sources" doc:"By JSON pointer: the file and line that a value is from."`
	Warnings []config.Problem         `json:"warnings"`
}

// ConfigGet reads the configuration of a context.
var ConfigGet = op.New(op.Spec{
	Name: "config.get", Method: "GET", Path: "/api/config", Summary: "Resolved config.", Codes: []fault.Code{fault.ConfigInvalid},
}, func(ctx context.Context, rt *runtime.Request, _ Empty) (op.Tagged[ConfigOutput], error) {
	c, err := rt.Parts().Config(ctx)
	if err != nil {
		return op.Tagged[ConfigOutput]{}, err
	}
	out := ConfigOutput{Config: op.JSON[map[string]any](c.Public), Sources: c.Sources, Warnings: c.Warnings}
	if out.Sources == nil {
		out.Sources = map[string]config.Source{}
	}
	if out.Warnings == nil {
		out.Warnings = []config.Problem{}
	}
	return op.Tagged[ConfigOutput]{Value: out}, nil
})
