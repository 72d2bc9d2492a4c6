package operations

import (
	"context"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/fs"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/runtime"
)

// writeBody is the limit of a fs.write body: the largest file in base64, with
// room for the rest.
const writeBody = fs.MaxWrite/3*4 + 1<<20

// whenOf reads the conditions of a change.
func whenOf(ifMatch, ifNoneMatch string) (fs.When, error) {
	when := fs.When{}
	if ifMatch != "" {
		when.Matches = func(tag string) bool { return op.ETagMatches(ifMatch, tag) }
	}
	switch ifNoneMatch {
	case "":
	case "*":
		when.Absent = true
	default:
		return when, fault.New(fault.ValidationFailed, "If-None-Match of a change may only be *").At("header.If-None-Match", "expected *")
	}
	return when, nil
}

// FSWriteInput is the new content of a file.
type FSWriteInput struct {
	Path        string `json:"path,omitempty" maxLength:"4096" doc:"Relative to the directory, or absolute inside it."`
	PathBytes   string `json:"pathBytes,omitempty" maxLength:"8192" doc:"Base64 of the path's exact bytes, in place of path."`
	Content     string `json:"content"`
	Encoding    string `json:"encoding,omitempty" enum:"utf-8,base64" doc:"Of content; default utf-8. base64 is written byte for byte."`
	Exact       bool   `json:"exact,omitempty" doc:"Write a text byte for byte, too."`
	IfMatch     string `json:"If-Match,omitempty" in:"header" doc:"The etag that fs.file gave, or * for a file that is there."`
	IfNoneMatch string `json:"If-None-Match,omitempty" in:"header" doc:"* writes only a file that is not there yet."`
}

// FSWrite replaces or makes one file.
var FSWrite = op.New(op.Spec{
	Name: "fs.write", Method: "PUT", Path: "/api/fs/file", Summary: "Write one file.",
	Doc: "Atomic: readers see the old bytes or the new ones. Missing directories are made, the mode of a present file is kept, a link stays a link. " +
		"A text takes over the byte order mark and the CRLF line ends of the file that it replaces; `exact` turns that off. At most 16 MiB. " +
		"Nothing in .git is written. Conditions are exact among writes through this context.",
	BodyLimit: writeBody, Repeatable: true,
	Codes:   []fault.Code{fault.NotAFile, fault.NotADirectory, fault.PathOutside, fault.ETagMismatch},
	Example: FSWriteInput{Path: "notes.md", Content: "# Notes\n", IfNoneMatch: "*"},
}, func(ctx context.Context, rt *runtime.Request, in FSWriteInput) (fs.Written, error) {
	when, err := whenOf(in.IfMatch, in.IfNoneMatch)
	if err != nil {
		return fs.Written{}, err
	}
	return rt.Parts().FS.Write(ctx, fs.WriteInput{
		In: fs.In{Path: in.Path, Bytes: in.PathBytes}, When: when, Content: in.Content, Base64: in.Encoding == "base64", Exact: in.Exact,
	})
})

// FSMkdirInput names a directory.
type FSMkdirInput struct {
	Path      string `json:"path,omitempty" maxLength:"4096" doc:"Relative to the directory, or absolute inside it."`
	PathBytes string `json:"pathBytes,omitempty" maxLength:"8192" doc:"Base64 of the path's exact bytes, in place of path."`
}

// FSMkdir makes a directory.
var FSMkdir = op.New(op.Spec{
	Name: "fs.mkdir", Method: "POST", Path: "/api/fs/directory", Summary: "Make a directory.",
	Doc: "With those that are missing above it. One that is there already is no error.", Repeatable: true,
	Codes:   []fault.Code{fault.NotADirectory, fault.PathOutside},
	Example: FSMkdirInput{Path: "src/new"},
}, func(ctx context.Context, rt *runtime.Request, in FSMkdirInput) (fs.Entry, error) {
	return rt.Parts().FS.Mkdir(ctx, fs.In{Path: in.Path, Bytes: in.PathBytes})
})

// FSDeleteInput names what to delete.
type FSDeleteInput struct {
	Path      string `json:"path,omitempty" maxLength:"4096" doc:"Relative to the directory, or absolute inside it."`
	PathBytes string `json:"pathBytes,omitempty" maxLength:"8192" doc:"Base64 of the path's exact bytes, in place of path."`
	Recursive bool   `json:"recursive,omitempty" doc:"Also a directory that holds something."`
	IfMatch   string `json:"If-Match,omitempty" in:"header" doc:"The etag that fs.file gave."`
}

// FSDelete deletes one entry of a directory.
var FSDelete = op.New(op.Spec{
	Name: "fs.delete", Method: "DELETE", Path: "/api/fs/entry", Summary: "Delete a file or a directory.",
	Doc:     "A link is deleted itself, never what it leads to. What is not there is a 404.",
	Codes:   []fault.Code{fault.FileNotFound, fault.DirectoryNotEmpty, fault.PathOutside, fault.ETagMismatch},
	Example: FSDeleteInput{Path: "notes.md"},
}, func(ctx context.Context, rt *runtime.Request, in FSDeleteInput) (op.None, error) {
	when, err := whenOf(in.IfMatch, "")
	if err != nil {
		return op.None{}, err
	}
	return op.None{}, rt.Parts().FS.Delete(ctx, fs.DeleteInput{
		In: fs.In{Path: in.Path, Bytes: in.PathBytes}, When: when, Recursive: in.Recursive,
	})
})

// FSRenameInput names what to move, and where to.
type FSRenameInput struct {
	From      string `json:"from,omitempty" maxLength:"4096" doc:"Relative to the directory, or absolute inside it."`
	FromBytes string `json:"fromBytes,omitempty" maxLength:"8192" doc:"Base64 of the path's exact bytes, in place of from."`
	To        string `json:"to,omitempty" maxLength:"4096"`
	ToBytes   string `json:"toBytes,omitempty" maxLength:"8192" doc:"Base64 of the path's exact bytes, in place of to."`
	Overwrite bool   `json:"overwrite,omitempty" doc:"Replace a file at to by a file."`
}

// FSRename moves one entry of a directory.
var FSRename = op.New(op.Spec{
	Name: "fs.rename", Method: "POST", Path: "/api/fs/rename", Summary: "Move a file or a directory.",
	Doc:     "In one step; missing directories above the new place are made. A link is moved itself.",
	Codes:   []fault.Code{fault.FileNotFound, fault.EntryExists, fault.NotADirectory, fault.PathOutside},
	Example: FSRenameInput{From: "notes.md", To: "docs/notes.md"},
}, func(ctx context.Context, rt *runtime.Request, in FSRenameInput) (fs.Entry, error) {
	return rt.Parts().FS.Rename(ctx, fs.RenameInput{
		From: fs.In{Path: in.From, Bytes: in.FromBytes}, To: fs.In{Path: in.To, Bytes: in.ToBytes}, Overwrite: in.Overwrite,
	})
})
