package fs

import "github.com/switchyard-dev/switchyard/event"

// FileEdited is the payload of file.edited.
type FileEdited struct {
	File string `json:"file" doc:"Absolute path."`
}

// Edited is published after the server changed a file: a tool replaced it, or a
// client wrote, moved or deleted it. A moved one is told at both of its paths; of
// a directory only the directory is told.
var Edited = event.Define[FileEdited]("file.edited")
