package patchfile

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"maps"
	"slices"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
)

// Content is what a file has become while several patches of one text change it.
type Content struct {
	Data []byte
	Mode uint32 // permission bits
	Gone bool
}

// maxImages bounds what is remembered of the files that a patch changes, in
// bytes.
const maxImages = 256 << 20

// Images are files as they were before a patch.
type Images map[string]image

type image struct {
	data []byte
	mode iofs.FileMode
	// gone says that there was nothing, odd that it was no regular file.
	gone, odd bool
}

// Take reads all files that a patch names.
func Take(files env.Files, parsed []*gitdiff.File) (Images, error) {
	taken, left := Images{}, int64(maxImages)
	for _, f := range parsed {
		for _, name := range []string{f.OldName, f.NewName} {
			if _, known := taken[name]; name == "" || known {
				continue
			}
			i, err := takeImage(files, name, left)
			if err != nil {
				return nil, err
			}
			taken[name] = i
			left -= int64(len(i.data))
		}
	}
	return taken, nil
}

func takeImage(files env.Files, name string, left int64) (image, error) {
	info, err := files.Lstat(name)
	if errors.Is(err, iofs.ErrNotExist) {
		return image{gone: true}, nil
	}
	if err != nil {
		return image{}, err
	}
	if !info.Mode().IsRegular() {
		return image{odd: true}, nil
	}
	if info.Size() > left {
		return image{}, fault.New(fault.BodyTooLarge, "the files of the patch are over %d bytes", maxImages)
	}
	f, err := files.Open(name)
	if err != nil {
		return image{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, left))
	if err != nil {
		return image{}, fmt.Errorf("reading %s: %w", name, err)
	}
	return image{data: data, mode: info.Mode().Perm()}, nil
}

// Content gives a file's image in the form that patches work on.
func (i Images) Content(name string) Content {
	at, ok := i[name]
	if !ok || at.gone || at.odd {
		return Content{Gone: true}
	}
	return Content{Data: at.data, Mode: uint32(at.mode)}
}

// Restore puts everything back. Links are left as they are.
func (i Images) Restore(files env.Files) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(i)) {
		at := i[name]
		switch {
		case at.odd:
		case at.gone:
			if _, err := files.Lstat(name); err == nil {
				errs = append(errs, files.Remove(name))
			}
		default:
			errs = append(errs, put(files, name, at.data, at.mode))
		}
	}
	return errors.Join(errs...)
}

// put writes a file with exactly this mode.
func put(files env.Files, name string, data []byte, mode iofs.FileMode) error {
	if info, err := files.Lstat(name); err == nil && info.Mode().Perm() != mode {
		// Writing keeps the mode of a file that is there.
		if err := files.Remove(name); err != nil {
			return err
		}
	}
	return files.WriteFile(name, data, mode)
}

// Write writes what files have become: first what is new, then what goes.
func Write(files env.Files, now map[string]Content) error {
	names := slices.Sorted(maps.Keys(now))
	for _, name := range names {
		if c := now[name]; !c.Gone {
			if err := put(files, name, c.Data, iofs.FileMode(c.Mode)); err != nil {
				return fmt.Errorf("writing %s: %w", name, err)
			}
		}
	}
	for _, name := range names {
		if !now[name].Gone {
			continue
		}
		if _, err := files.Lstat(name); err != nil {
			continue // it was made and removed by one patch
		}
		if err := files.Remove(name); err != nil {
			return fmt.Errorf("removing %s: %w", name, err)
		}
	}
	return nil
}
