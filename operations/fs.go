package operations

import (
	"context"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/fs"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/runtime"
)

// FSFileInput selects a file and, perhaps, a part of it.
type FSFileInput struct {
	Path      string `json:"path,omitempty" maxLength:"4096" doc:"Relative to the directory, or absolute inside it."`
	PathBytes string `json:"pathBytes,omitempty" maxLength:"8192" doc:"Base64 of the path's exact bytes, in place of path."`
	Offset    int64  `json:"offset,omitempty" minimum:"0" doc:"Where to begin, in the unit."`
	Limit     int64  `json:"limit,omitempty" minimum:"0" doc:"How much to read, in the unit; at most 1 MiB of content in any case."`
	Unit      string `json:"unit,omitempty" enum:"bytes,lines" doc:"Default bytes."`
	Raw       bool   `json:"raw,omitempty" doc:"Answer the bytes themselves, with ETag and Range. So does Accept: application/octet-stream."`
	Accept    string `json:"Accept,omitempty" in:"header"`
}

// FSFile reads one file.
var FSFile = op.New(op.Spec{
	Name: "fs.file", Method: "GET", Path: "/api/fs/file", Summary: "Read one file.",
	Doc:      "Text keeps its exact bytes; what is not UTF-8 is base64. Large files are read by ranges or raw.",
	Produces: []string{"application/octet-stream"},
	Codes:    []fault.Code{fault.FileNotFound, fault.NotAFile, fault.PathOutside, fault.RangeInvalid},
	Example:  FSFileInput{Path: "README.md", Unit: "lines", Limit: 100},
}, func(ctx context.Context, rt *runtime.Request, in FSFileInput) (op.Alt[fs.File, op.Raw], error) {
	none := op.Alt[fs.File, op.Raw]{}
	at := fs.In{Path: in.Path, Bytes: in.PathBytes}
	if in.Raw || op.Accepts(in.Accept, "application/octet-stream") {
		raw, err := rt.Parts().FS.Raw(at)
		if err != nil {
			return none, err
		}
		return op.Alt[fs.File, op.Raw]{Other: &op.Raw{
			Content: raw.ReadSeekCloser, Type: "application/octet-stream", ETag: raw.ETag, ModTime: raw.ModTime,
		}}, nil
	}
	file, err := rt.Parts().FS.Read(ctx, fs.ReadInput{In: at, Offset: in.Offset, Limit: in.Limit, Unit: fs.Unit(in.Unit)})
	return op.Alt[fs.File, op.Raw]{Value: file}, err
})

// FSTreeInput selects a directory.
type FSTreeInput struct {
	Path      string `json:"path,omitempty" maxLength:"4096" doc:"Default the directory itself."`
	PathBytes string `json:"pathBytes,omitempty" maxLength:"8192" doc:"Base64 of the path's exact bytes, in place of path."`
	Limit     int    `json:"limit,omitempty" doc:"Default 1,000, at most 10,000; more is taken as 10,000."`
	Cursor    string `json:"cursor,omitempty"`
	Hidden    *bool  `json:"hidden,omitempty" doc:"Default true; false leaves out names that begin with a dot."`
	Ignored   *bool  `json:"ignored,omitempty" doc:"Default true; false leaves out what ignore files exclude."`
}

// FSTree lists one level of a directory.
var FSTree = op.New(op.Spec{
	Name: "fs.tree", Method: "GET", Path: "/api/fs/tree", Summary: "Browse a directory.",
	Doc:     "Directories first, then bytewise by name. .git is left out.",
	Codes:   []fault.Code{fault.FileNotFound, fault.NotADirectory, fault.PathOutside, fault.CursorInvalid},
	Example: FSTreeInput{Path: "src"},
}, func(ctx context.Context, rt *runtime.Request, in FSTreeInput) (op.Page[fs.Entry], error) {
	page, err := rt.Parts().FS.Tree(ctx, fs.TreeInput{
		In: fs.In{Path: in.Path, Bytes: in.PathBytes}, Limit: in.Limit, Cursor: in.Cursor,
		NoHidden: in.Hidden != nil && !*in.Hidden, NoIgnored: in.Ignored != nil && !*in.Ignored,
	})
	if err != nil {
		return op.Page[fs.Entry]{}, err
	}
	return pageOf(page.Entries, page.Previous, page.Next, nil, nil), nil
})

// FSSearchInput says which paths to look for.
type FSSearchInput struct {
	Query   string `json:"query" maxLength:"1000" doc:"Letters in order; words apart by spaces must all match. Empty gives the top level."`
	Type    string `json:"type,omitempty" enum:"file,directory"`
	Limit   int    `json:"limit,omitempty" doc:"Default 50, at most 1,000."`
	Hidden  bool   `json:"hidden,omitempty" doc:"Also names that begin with a dot."`
	Ignored bool   `json:"ignored,omitempty" doc:"Also what ignore files exclude."`
}

// FSSearch finds paths by name.
var FSSearch = op.New(op.Spec{
	Name: "fs.search", Method: "POST", Path: "/api/fs/search", Summary: "Search paths by name.", NoCursor: true, Repeatable: true,
	Example: FSSearchInput{Query: "sessrv", Limit: 10},
}, func(ctx context.Context, rt *runtime.Request, in FSSearchInput) (fs.SearchOutput, error) {
	return rt.Parts().FS.Search(ctx, fs.SearchInput{
		Query: in.Query, Type: in.Type, Limit: in.Limit, Hidden: in.Hidden, Ignored: in.Ignored,
	})
})

// FSGrepInput says which contents to look for.
type FSGrepInput struct {
	Pattern string `json:"pattern" minLength:"1" maxLength:"10000" doc:"RE2; matches within lines."`
	Literal bool   `json:"literal,omitempty" doc:"The pattern is a text, not an expression."`
	Include string `json:"include,omitempty" maxLength:"1000" doc:"Glob; without a slash for names, else for paths."`
	Limit   int    `json:"limit,omitempty" doc:"Default 100, at most 10,000."`
	Context int    `json:"context,omitempty" minimum:"0" maximum:"20" doc:"Lines before and after."`
	Hidden  bool   `json:"hidden,omitempty" doc:"Also names that begin with a dot."`
	Ignored bool   `json:"ignored,omitempty" doc:"Also what ignore files exclude."`
	Accept  string `json:"Accept,omitempty" in:"header"`
}

// FSGrep searches the contents of files.
var FSGrep = op.New(op.Spec{
	Name: "fs.grep", Method: "POST", Path: "/api/fs/grep", Summary: "Search file contents.", NoCursor: true, Repeatable: true,
	Doc:     "By path, then line. Binary files and files over 32 MiB are left out. With Accept: application/x-ndjson the matches come line by line.",
	Codes:   []fault.Code{fault.PatternInvalid},
	Example: FSGrepInput{Pattern: `func \w+Test`, Include: "*.go"},
}, func(ctx context.Context, rt *runtime.Request, in FSGrepInput) (op.Alt[fs.GrepOutput, op.Lines[fs.Match]], error) {
	what := fs.GrepInput{
		Pattern: in.Pattern, Literal: in.Literal, Include: in.Include, Limit: in.Limit, Context: in.Context, Hidden: in.Hidden, Ignored: in.Ignored,
	}
	if op.Accepts(in.Accept, "application/x-ndjson") {
		return op.Alt[fs.GrepOutput, op.Lines[fs.Match]]{Other: &op.Lines[fs.Match]{Items: rt.Parts().FS.GrepEach(ctx, what)}}, nil
	}
	found, err := rt.Parts().FS.Grep(ctx, what)
	return op.Alt[fs.GrepOutput, op.Lines[fs.Match]]{Value: found}, err
})
