package sqlgen

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// fsys is a tree that can be listed and read.
type fsys = fs.FS

// A mark is a comment right behind a column's type in a SQLite migration. STRICT
// tables know neither json nor boolean, so the mark carries what sqlc must see.
var mark = regexp.MustCompile(`(?i)\b(TEXT|INTEGER)(\s*)/\*\s*(\w+)\s*\*/`)

// marked maps a SQLite type and its mark to the type name that sqlc is given.
var marked = map[string]string{
	"TEXT json":    "json",
	"INTEGER bool": "boolean",
}

// fill copies the inputs into stage: the config, the queries and both schemas,
// SQLite's with its marked types replaced.
func fill(stage string, root fsys) error {
	if err := put(stage, root, configFile, nil); err != nil {
		return err
	}
	for _, dir := range []string{sharedDir, pgDir, liteDir, pgSchema, liteSchema} {
		names, err := sqlFiles(root, dir)
		if err != nil {
			return err
		}
		// sqlc insists on each directory that its config names.
		if err := os.MkdirAll(filepath.Join(stage, dir), 0o700); err != nil {
			return err
		}
		var change func([]byte) []byte
		if dir == liteSchema {
			change = unmark
		}
		for _, name := range names {
			if err := put(stage, root, name, change); err != nil {
				return err
			}
		}
	}
	return nil
}

func put(stage string, root fsys, name string, change func([]byte) []byte) error {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return err
	}
	if change != nil {
		b = change(b)
	}
	return os.WriteFile(filepath.Join(stage, filepath.FromSlash(name)), b, 0o600)
}

// unmark replaces each marked type by the one that it stands for. Unknown marks
// stay: check has refused them.
func unmark(sql []byte) []byte {
	return mark.ReplaceAllFunc(sql, func(m []byte) []byte {
		sub := mark.FindSubmatch(m)
		if name, ok := marked[strings.ToUpper(string(sub[1]))+" "+string(sub[3])]; ok {
			return []byte(name)
		}
		return m
	})
}

// sqlFiles lists dir's .sql files in order, as paths from root. A directory that
// does not exist has none.
func sqlFiles(root fsys, dir string) ([]string, error) {
	names, err := fs.Glob(root, path.Join(dir, "*.sql"))
	slices.Sort(names)
	return names, err
}

// install makes the tree's generated packages hold exactly files and gives the
// paths that it changed. Files without the generated header are left alone.
func install(root string, files map[string][]byte) ([]string, error) {
	changed := []string{}
	for _, dir := range []string{baseDir, pgOut, liteOut} {
		gone, err := removeStale(root, dir, files)
		if err != nil {
			return changed, fmt.Errorf("removing old code: %w", err)
		}
		changed = append(changed, gone...)
	}
	for name, content := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, content) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return changed, fmt.Errorf("writing %s: %w", name, err)
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return changed, fmt.Errorf("writing %s: %w", name, err)
		}
		changed = append(changed, name)
	}
	slices.Sort(changed)
	return changed, nil
}

func removeStale(root, dir string, files map[string][]byte) ([]string, error) {
	old, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*.go"))
	if err != nil {
		return nil, err
	}
	var gone []string
	for _, file := range old {
		name := path.Join(dir, filepath.Base(file))
		if _, ok := files[name]; ok {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return gone, err
		}
		if !bytes.HasPrefix(b, []byte(headerMarker)) {
			continue
		}
		if err := os.Remove(file); err != nil {
			return gone, err
		}
		gone = append(gone, name)
	}
	return gone, nil
}
