package project

import (
	"github.com/switchyard-dev/switchyard/event"
	"github.com/switchyard-dev/switchyard/id"
)

// Info is the payload of project.updated.
type Info struct {
	ProjectID id.Project `json:"projectID"`
	Info      Project    `json:"info"`
}

// Updated is published when a project's metadata were changed. It belongs to no
// directory.
var Updated = event.Define[Info]("project.updated")
