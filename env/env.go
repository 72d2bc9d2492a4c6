// Package env is the seam between the server and the place where a session's
// files and processes live. Tools and domain services reach both only through an
// Environment, so that they cannot observe where they run (design §5). This
// package also holds the local implementation, over os.Root.
package env

import (
	"context"
	"io"
	iofs "io/fs"
	"time"
)

// Environment is one place: a root directory, the files below it and the
// processes that run there. It is safe for concurrent use.
type Environment interface {
	// Root is the absolute canonical directory that contains everything.
	Root() string
	// Files are the files below Root.
	Files() Files
	// Open gives the files below another absolute directory, for a call whose
	// access outside Root was granted. The caller closes it.
	Open(directory string) (Files, error)
	// Start runs a command in its own process group.
	Start(ctx context.Context, c Command) (Process, error)
	// Close frees what the environment holds. It waits for nothing and kills
	// nothing: processes belong to who started them.
	Close() error
}

// Files reaches files by slash paths that are relative to its root, or absolute
// and inside it. Anything that leads out of the root, also through symbolic
// links, is a path_outside fault; what is not there is a file_not_found fault
// with "path". Both also match errors.Is with io/fs' errors where one fits.
type Files interface {
	Paths
	Reader
	Writer
	Walker
	io.Closer
}

// Walker visits trees.
type Walker interface {
	// Walk calls visit for everything below o.Path; see WalkOptions for what is
	// left out and in which order. Directories come before what they hold.
	// visit may return iofs.SkipDir for a directory to pass over its contents
	// and iofs.SkipAll to end the walk; any other error ends it and is returned.
	// Directories that cannot be read are passed over. Walk returns ctx's cause
	// soon after ctx ends, and no goroutine of it is left when it returns.
	Walk(ctx context.Context, o WalkOptions, visit func(*Entry) error) error
}

// Reader reads.
type Reader interface {
	// Open opens a regular file. A directory, FIFO, socket or device is a
	// not_a_file fault, at once: nothing that could block is opened.
	Open(path string) (File, error)
	// Stat follows links; Lstat does not.
	Stat(path string) (iofs.FileInfo, error)
	Lstat(path string) (iofs.FileInfo, error)
	// ReadDir lists one directory, in the order of the directory: its first n
	// entries, or all for n ≤ 0. It opens no entry. A path that is no directory
	// is a not_a_directory fault.
	ReadDir(path string, n int) ([]iofs.DirEntry, error)
}

// Paths tells what a path as users write it means.
type Paths interface {
	// Rel gives the clean slash path relative to the root; it looks at no file.
	Rel(path string) (string, error)
	// Resolve is Rel with all links followed, except one in the last element. What
	// does not exist is left as it is written.
	Resolve(path string) (string, error)
}

// Writer changes files.
type Writer interface {
	// WriteFile replaces a file atomically and makes missing directories. The
	// mode of an existing file is kept; mode is for a new one. A symbolic link
	// stays a link: the file it leads to is replaced.
	WriteFile(path string, data []byte, mode iofs.FileMode) error
	// Mkdir makes a directory and those missing above it; one that is there
	// already is no error.
	Mkdir(path string, mode iofs.FileMode) error
	// Remove removes a file, a link or a directory with all below it.
	Remove(path string) error
	// Rename moves a file, a link or a directory and makes the directories that
	// are missing above its new place. An existing file there is replaced.
	Rename(from, to string) error
}

// File is an open regular file.
type File interface {
	io.Reader
	io.ReaderAt
	io.Seeker
	io.Closer
	Stat() (iofs.FileInfo, error)
}

// Command says what to run. The child gets an allow-listed environment
// (PATH, HOME, LANG and the like), then Env; never the server's own secrets.
type Command struct {
	// Args are the program and its arguments. When Shell is set instead, the
	// text runs in the environment's shell.
	Args  []string
	Shell string
	// Dir is relative to the root or absolute inside it; "" is the root.
	Dir string
	Env map[string]string
	// Output receives stdout and stderr, merged in the order of writing, or
	// stdout alone where Errors takes stderr.
	Output io.Writer
	Errors io.Writer
	// Stdin is what the command reads; nil is an empty file.
	Stdin io.Reader
	// Call marks the child and what it starts (SWITCHYARD_CALL).
	Call string
}

// Process is a running command.
type Process interface {
	PID() int
	// Wait ends when the command and the copying of its output have ended.
	// Background children that keep the output open are given a short grace.
	Wait() Exit
	// Stop sends INT, then TERM, then KILL to the whole process group and
	// returns when the group is gone, within three seconds.
	Stop()
}

// Exit tells how a command ended.
type Exit struct {
	Code   int    // -1 when a signal ended it
	Signal string // e.g. "SIGKILL", "" otherwise
	Err    error  // could not be run or waited for
	Took   time.Duration
}
