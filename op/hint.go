package op

import (
	"net/http"
	"net/url"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/runtime"
)

// The headers that hold a context hint. The directory is percent-encoded.
const (
	HeaderDirectory = "X-Opencode-Directory"
	HeaderWorkspace = "X-Opencode-Workspace"
)

// hintNames are the query parameters that hold a context hint; the last two are
// synonyms of the first two.
var hintNames = []string{"directory", "workspace", "location[directory]", "location[workspace]"}

// readHints reads what a request says about its context. Operations of the
// server and of a session have a context already: they refuse hints in the
// query and do not look at the headers, which some clients always send.
func readHints(c *core, r *http.Request, query url.Values) ([]runtime.Hint, error) {
	if c.kind != KindRequest {
		for _, name := range hintNames {
			if _, given := query[name]; given {
				return nil, fault.New(fault.ContextNotAccepted, "%s is a %s operation and takes no context: leave %q out", c.spec.Name, c.kind, name).
					At(InQuery+"."+name, "not accepted here")
			}
		}
		return nil, nil
	}
	if c.spec.Item {
		return nil, nil
	}
	hints, err := queryHints(query)
	if err != nil {
		return nil, err
	}
	if hints == nil {
		hints, err = headerHints(r.Header)
	}
	if err == nil && len(hints) > 1 && !c.spec.Many {
		return nil, fault.New(fault.ContextAmbiguous, "this operation runs in one context, and %d are given", len(hints))
	}
	return hints, err
}

// queryHints gives the hints of a query, nil when there are none.
func queryHints(query url.Values) ([]runtime.Hint, error) {
	directories, err := spelled(query, hintNames[0], hintNames[2])
	if err != nil {
		return nil, err
	}
	workspaces, err := spelled(query, hintNames[1], hintNames[3])
	if err != nil {
		return nil, err
	}
	if len(workspaces) > 0 && len(directories) > 1 || len(directories) > 0 && len(workspaces) > 1 {
		return nil, fault.New(fault.ContextAmbiguous, "a workspace is given beside several directories: it is not clear which belong together")
	}
	var hints []runtime.Hint
	for _, d := range directories {
		hint := runtime.Hint{Directory: d, HasDirectory: true}
		if len(workspaces) == 1 {
			hint.Workspace, hint.HasWorkspace = workspaces[0], true
		}
		hints = append(hints, hint)
	}
	for _, w := range workspaces {
		if len(directories) == 0 {
			hints = append(hints, runtime.Hint{Workspace: w, HasWorkspace: true})
		}
	}
	return hints, nil
}

func spelled(query url.Values, name, synonym string) ([]string, error) {
	if len(query[name]) > 0 && len(query[synonym]) > 0 {
		return nil, fault.New(fault.ValidationFailed, "%q and %q are two spellings of one parameter", name, synonym).
			At(InQuery+"."+synonym, "another spelling of %q: give one of them", name)
	}
	if len(query[name]) > 0 {
		return query[name], nil
	}
	return query[synonym], nil
}

func headerHints(h http.Header) ([]runtime.Hint, error) {
	directories, workspaces := h[HeaderDirectory], h[HeaderWorkspace]
	if len(directories)+len(workspaces) == 0 {
		return nil, nil
	}
	if len(directories) > 1 || len(workspaces) > 1 {
		return nil, fault.New(fault.ContextAmbiguous, "a context header is given more than once")
	}
	var hint runtime.Hint
	if len(directories) == 1 {
		decoded, err := url.PathUnescape(directories[0])
		if err != nil {
			return nil, fault.New(fault.DirectoryInvalid, "the header %s is not percent-encoded", HeaderDirectory).
				At(InHeader+"."+HeaderDirectory, "not percent-encoded")
		}
		hint.Directory, hint.HasDirectory = decoded, true
	}
	if len(workspaces) == 1 {
		hint.Workspace, hint.HasWorkspace = workspaces[0], true
	}
	return []runtime.Hint{hint}, nil
}
