package tool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	iofs "io/fs"
	"maps"
	"path"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/tool/output"
)

const (
	maxEdited = 16 << 20 // bytes of a file that is replaced
	maxDiffed = 1 << 20  // bytes of a file whose diff is shown
	maxDiff   = 51200    // bytes of a diff that is shown

	bom = "\uFEFF"
)

// change is one file that a call replaces.
type change struct {
	target
	existed       bool
	before, after string
}

// load reads the file that stands at t now.
func (c *Call) load(t target) (change, error) {
	ch := change{target: t}
	files, done, err := c.open(t)
	if err != nil {
		return ch, err
	}
	defer done()
	data, err := readAll(files, t.abs)
	if errors.Is(err, iofs.ErrNotExist) {
		return ch, nil
	}
	ch.existed, ch.before = err == nil, string(data)
	return ch, err
}

func readAll(files env.Files, name string) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxEdited+1))
	if len(data) > maxEdited {
		return nil, fault.New(fault.BodyTooLarge, "%s is larger than %d MiB and cannot be changed with this tool.", name, maxEdited>>20)
	}
	return data, err
}

// hash gives the sha256 in hex.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// oldHash names the file's bytes before; "" when it did not exist.
func (ch change) oldHash() string {
	if !ch.existed {
		return ""
	}
	return hash(ch.before)
}

// plan asks for the change and remembers what it was made for.
func (ch change) plan() Plan {
	metadata := ch.metadata()
	metadata[filePathName] = ch.abs
	return Plan{
		Asks:   ch.ask(permEdit, []string{ch.name}, metadata),
		Before: map[string]string{ch.abs: ch.oldHash()},
		After:  map[string]string{ch.abs: hash(ch.after)},
	}
}

// unseen is the plan for a file outside of the root that cannot be looked at.
// What is wrong with it is only told after the directory was allowed.
func (t target) unseen() Plan {
	return Plan{Asks: t.ask(permEdit, []string{t.name}, map[string]any{filePathName: t.abs})}
}

// metadata describes the change for people.
func (ch change) metadata() map[string]any {
	m := map[string]any{"status": "modified"}
	if !ch.existed {
		m["status"] = "added"
	}
	if max(len(ch.before), len(ch.after)) > maxDiffed {
		m["diff"], m["diffTruncated"] = "", true
		return m
	}
	m["diff"] = udiff.Unified("a/"+strings.TrimPrefix(ch.name, "/"), "b/"+strings.TrimPrefix(ch.name, "/"), ch.before, ch.after)
	if diff := m["diff"].(string); len(diff) > maxDiff {
		m["diff"], m["diffTruncated"] = diff[:output.CutHead(diff, maxDiff, maxDiff)], true
	}
	additions, deletions := 0, 0
	for _, e := range udiff.Lines(ch.before, ch.after) {
		additions += output.Lines(e.New)
		deletions += output.Lines(ch.before[e.Start:e.End])
	}
	m["additions"], m["deletions"] = additions, deletions
	return m
}

// apply writes the change, unless the file is not what was approved.
func (ch change) apply(ctx context.Context, c *Call) (Result, error) {
	if err := context.Cause(ctx); err != nil {
		return Result{}, err
	}
	if approved, ok := c.Before[ch.abs]; ok && approved != ch.oldHash() {
		return Result{}, fault.New(fault.ETagMismatch,
			"%s has changed since this was approved. Nothing was written; read it again.", c.show(ch.abs))
	}
	files, done, err := c.open(ch.target)
	if err != nil {
		return Result{}, err
	}
	defer done()
	if err := files.WriteFile(ch.abs, []byte(ch.after), 0o644); err != nil {
		return Result{}, c.explain(ch.target, err)
	}
	after := hash(ch.after)
	c.saw(ch.abs, after)
	if c.Edited != nil {
		c.Edited(ctx, ch.abs)
	}
	res := Result{
		Title:    c.show(ch.abs),
		Metadata: ch.metadata(),
		Before:   map[string]string{ch.abs: ch.oldHash()},
		After:    map[string]string{ch.abs: after},
	}
	maps.Copy(res.Metadata, map[string]any{filePathName: ch.abs, "existed": ch.existed})
	return res, nil
}

// fileName refuses what cannot name a file.
func fileName(p string) error {
	if p == "" || strings.HasSuffix(p, "/") || path.Base(path.Clean(p)) == ".." || path.Clean(p) == "." {
		return invalid("The input is not valid: path must name a file.")
	}
	return nil
}

// binary reports bytes that are no text: a NUL, or more control characters than
// text has.
func binary(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	odd := 0
	for _, b := range head {
		if b < ' ' && !strings.ContainsRune("\t\n\r\f\b\x1b", rune(b)) {
			odd++
		}
	}
	return odd*10 > len(head)*3
}
