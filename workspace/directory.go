package workspace

import "context"

// directories is the Driver of directories that somebody else made.
type directories struct{}

// Create has nothing to make: the directory was looked at before.
func (directories) Create(context.Context, Workspace, func(string)) error { return nil }

// Connect gives the directory itself.
func (directories) Connect(_ context.Context, w Workspace) (string, error) { return connected(w) }

// Status looks whether the directory is there.
func (directories) Status(_ context.Context, w Workspace) (Status, string) {
	return missing(w.Directory)
}

// List finds nothing: any directory could be one.
func (directories) List(context.Context, Project) ([]Found, error) { return nil, nil }

// Remove leaves the directory to whom it belongs.
func (directories) Remove(_ context.Context, w Workspace, _ bool) ([]string, error) {
	if status, _ := missing(w.Directory); status == Missing {
		return []string{}, nil
	}
	return []string{w.Directory}, nil
}
