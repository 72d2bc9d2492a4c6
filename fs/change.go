package fs

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"strings"
	"syscall"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/store"
)

// MaxWrite is the most bytes of a file that Write replaces or makes.
const MaxWrite = 16 << 20

const bom = "\uFEFF"

// When says under which condition a file is changed: the entity tag that it must
// have as Read gives it ("*" for any file that is there), and whether it must not
// be there yet. The zero value is no condition.
type When struct {
	// Matches reports whether the tag of the present file is the wanted one; nil
	// wants nothing.
	Matches func(etag string) bool
	Absent  bool
}

// check holds the condition against what is there; info is nil for nothing.
func (w When) check(path string, info iofs.FileInfo) error {
	switch {
	case info == nil && w.Matches != nil:
		return fault.New(fault.ETagMismatch, "there is no file %s (any more)", path).With("path", path)
	case info != nil && w.Absent:
		return fault.New(fault.ETagMismatch, "%s is there already", path).With("path", path).With("etag", etagOf(info))
	case info != nil && w.Matches != nil && !w.Matches(etagOf(info)):
		return fault.New(fault.ETagMismatch, "%s has changed", path).With("path", path).With("etag", etagOf(info))
	}
	return nil
}

// WriteInput is the new content of a file.
type WriteInput struct {
	In
	When
	Content string
	// Base64 says how Content is spelled; such bytes are written as they are.
	Base64 bool
	// Exact writes a text as it is, too: otherwise a byte order mark and CRLF line
	// ends of the present file are kept where the text has none.
	Exact bool
}

// Written tells what stands in the file now.
type Written struct {
	PathName
	Size    int64  `json:"size" doc:"Bytes."`
	ETag    string `json:"etag" doc:"For If-Match of the next write."`
	Created bool   `json:"created" doc:"There was no file before."`
}

// Write replaces a file, or makes it with the directories that are missing above
// it: readers see the old or the new bytes, never some of both. A link stays, the
// file that it leads to is replaced. What is no regular file is a not_a_file
// fault, a condition that does not hold an etag_mismatch one; nothing is changed
// then. Conditions are exact among changes through one Service.
func (s *Service) Write(ctx context.Context, in WriteInput) (Written, error) {
	name, data, err := s.writable(in)
	if err != nil {
		return Written{}, err
	}
	s.change.Lock()
	defer s.change.Unlock()
	old, err := s.present(name)
	if err == nil {
		err = in.check(nameOf(name).Path, old)
	}
	if err != nil {
		return Written{}, err
	}
	if old != nil && !in.Base64 && !in.Exact {
		if data, err = s.inStyleOf(name, data); err != nil {
			return Written{}, err
		}
	}
	if err := s.files.WriteFile(name, data, 0o644); err != nil {
		return Written{}, err
	}
	if err := s.tell(ctx, name); err != nil {
		return Written{}, err
	}
	now, err := s.files.Stat(name)
	if err != nil {
		return Written{}, fmt.Errorf("reading what was written: %w", err)
	}
	return Written{PathName: nameOf(name), Size: now.Size(), ETag: etagOf(now), Created: old == nil}, nil
}

// writable reads the input of a write.
func (s *Service) writable(in WriteInput) (string, []byte, error) {
	name, err := s.changeable(in.In)
	if err != nil {
		return "", nil, err
	}
	data := []byte(in.Content)
	if in.Base64 {
		if data, err = base64.StdEncoding.DecodeString(in.Content); err != nil {
			return "", nil, fault.New(fault.ValidationFailed, "content is not base64").At("body.content", "not base64")
		}
	}
	if len(data) > MaxWrite {
		return "", nil, fault.New(fault.BodyTooLarge, "the content has %d bytes, at most %d are written", len(data), MaxWrite)
	}
	return name, data, nil
}

// present gives what a write to the path would replace, nil for nothing.
func (s *Service) present(name string) (iofs.FileInfo, error) {
	info, err := s.files.Stat(name)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fault.New(fault.NotAFile, "%s is not a regular file", nameOf(name).Path).With("path", nameOf(name).Path)
	}
	return info, nil
}

// inStyleOf gives a text the byte order mark and the line ends of the file that
// it replaces. A file has CRLF line ends when all of its lines end so.
func (s *Service) inStyleOf(name string, text []byte) ([]byte, error) {
	f, err := s.files.Open(name)
	if err != nil {
		return nil, err
	}
	old, err := io.ReadAll(io.LimitReader(f, MaxWrite))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if ends := bytes.Count(old, []byte("\r\n")); ends > 0 && ends == bytes.Count(old, []byte("\n")) && !bytes.Contains(text, []byte("\r\n")) {
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	}
	if bytes.HasPrefix(old, []byte(bom)) && !bytes.HasPrefix(text, []byte(bom)) {
		text = append([]byte(bom), text...)
	}
	return text, nil
}

// Mkdir makes a directory and those missing above it; one that is there is no
// error. A file there is a not_a_directory fault.
func (s *Service) Mkdir(ctx context.Context, in In) (Entry, error) {
	name, err := s.changeable(in)
	if err != nil {
		return Entry{}, err
	}
	s.change.Lock()
	defer s.change.Unlock()
	if info, err := s.files.Stat(name); err == nil && info.IsDir() {
		return s.entryAt(name)
	}
	if err := s.files.Mkdir(name, 0o755); err != nil {
		return Entry{}, err
	}
	if err := s.tell(ctx, name); err != nil {
		return Entry{}, err
	}
	return s.entryAt(name)
}

// DeleteInput names what to delete.
type DeleteInput struct {
	In
	When
	// Recursive allows a directory that holds something.
	Recursive bool
}

// Delete removes a file, a link itself, or a directory. A directory that holds
// something is a directory_not_empty fault unless Recursive is set.
func (s *Service) Delete(ctx context.Context, in DeleteInput) error {
	name, err := s.changeable(in.In)
	if err != nil {
		return err
	}
	s.change.Lock()
	defer s.change.Unlock()
	info, err := s.files.Lstat(name)
	if err == nil {
		err = in.check(nameOf(name).Path, info)
	}
	if err != nil {
		return err
	}
	if info.IsDir() && !in.Recursive {
		first, err := s.files.ReadDir(name, 1)
		if err != nil {
			return err
		}
		if len(first) > 0 {
			return fault.New(fault.DirectoryNotEmpty, "the directory %s is not empty", nameOf(name).Path).With("path", nameOf(name).Path)
		}
	}
	if err := s.files.Remove(name); err != nil {
		return err
	}
	return s.tell(ctx, name)
}

// RenameInput names what to move, and where to.
type RenameInput struct {
	From, To In
	// Overwrite allows a file at To, which is then replaced in one step.
	Overwrite bool
}

// Rename moves a file, a link itself or a directory and makes the directories
// missing above its new place. Anything at the new place is an entry_exists fault,
// unless both are files and Overwrite is set.
func (s *Service) Rename(ctx context.Context, in RenameInput) (Entry, error) {
	from, err := s.changeable(in.From)
	if err != nil {
		return Entry{}, err
	}
	to, err := s.changeable(in.To)
	if err != nil {
		return Entry{}, err
	}
	s.change.Lock()
	defer s.change.Unlock()
	old, err := s.files.Lstat(from)
	if err != nil {
		return Entry{}, err
	}
	if err := s.free(from, to, old, in.Overwrite); err != nil {
		return Entry{}, err
	}
	if err := s.files.Rename(from, to); err != nil {
		return Entry{}, err
	}
	if err := s.tell(ctx, from, to); err != nil {
		return Entry{}, err
	}
	return s.entryAt(to)
}

// free makes sure that old may be moved to a path.
func (s *Service) free(from, to string, old iofs.FileInfo, overwrite bool) error {
	if old.IsDir() && strings.HasPrefix(to, from+"/") {
		return fault.New(fault.EntryExists, "a directory cannot be moved below itself").With("path", nameOf(to).Path)
	}
	there, err := s.files.Lstat(to)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// The other spelling of a name where letter case makes no difference.
	if sameFile(old, there) && from != to && strings.EqualFold(from, to) {
		return nil
	}
	if overwrite && !old.IsDir() && !there.IsDir() {
		return nil
	}
	return fault.New(fault.EntryExists, "there is something at %s already", nameOf(to).Path).With("path", nameOf(to).Path)
}

func sameFile(a, b iofs.FileInfo) bool {
	x, ok := a.Sys().(*syscall.Stat_t)
	y, too := b.Sys().(*syscall.Stat_t)
	return ok && too && x.Dev == y.Dev && x.Ino == y.Ino
}

// changeable reads a path that is to be changed: not the directory itself, and
// nothing of a repository's own, also not through links. Git's files are for git:
// a hook that is written there would be run by it.
func (s *Service) changeable(in In) (string, error) {
	name, err := s.resolve(in)
	if err != nil {
		return "", err
	}
	real, err := s.files.Resolve(name)
	if err != nil {
		return "", err
	}
	for _, path := range []string{name, real} {
		for part := range strings.SplitSeq(path, "/") {
			if strings.EqualFold(part, ".git") {
				return "", fault.New(fault.PathOutside, "%s belongs to git and is not changed", nameOf(name).Path).With("path", nameOf(name).Path)
			}
		}
	}
	if name == "." {
		return "", fault.New(fault.PathOutside, "the directory itself cannot be changed").With("path", ".")
	}
	return name, nil
}

// entryAt describes what is at a path.
func (s *Service) entryAt(name string) (Entry, error) {
	info, err := s.files.Lstat(name)
	if err != nil {
		return Entry{}, err
	}
	dir, base := ".", name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		dir, base = name[:i], name[i+1:]
	}
	return s.entry(dir, listed{name: base, typ: info.Mode().Type()}), nil
}

// tell publishes that files were changed. The change stands whether or not that
// succeeds, and the fault says so.
func (s *Service) tell(ctx context.Context, names ...string) error {
	if s.store == nil {
		return nil
	}
	err := s.store.Write(context.WithoutCancel(ctx), store.Relaxed, func(_ context.Context, tx *store.Tx) error {
		for _, name := range names {
			if err := Edited.Append(tx, s.origin, FileEdited{File: readable(s.absolute(name))}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("the file was changed, but telling it: %w", err)
	}
	return nil
}
