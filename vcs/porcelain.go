package vcs

import (
	"bytes"
	"fmt"
	"strings"
)

// entry is one record of git status, in its second porcelain format.
type entry struct {
	kind     byte   // 1 changed, 2 renamed, u conflict, ? untracked
	x, y     byte   // in the index and in the work tree; '.' for no change
	sub      string // "N..." or "S" and c, m, u
	oid      string // of HEAD's version
	modeHead string
	path     string // relative to the work tree's top, exact bytes
	from     string // the old path of a rename
}

// parseStatus reads what git status --porcelain=v2 -z prints.
func parseStatus(out []byte) ([]entry, error) {
	var entries []entry
	for len(out) > 0 {
		record, rest, ok := bytes.Cut(out, []byte{0})
		if !ok {
			return nil, fmt.Errorf("git status ended within %q", record)
		}
		out = rest
		e, err := parseEntry(string(record))
		if err != nil {
			return nil, err
		}
		if e.kind == '2' {
			from, rest, ok := bytes.Cut(out, []byte{0})
			if !ok {
				return nil, fmt.Errorf("git status ended after %q", record)
			}
			e.from, out = string(from), rest
		}
		if e.kind != '#' && e.kind != '!' {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// fieldsBefore is how many fields stand before the path in each kind of record.
var fieldsBefore = map[byte]int{'1': 8, '2': 9, 'u': 10, '?': 1, '!': 1}

func parseEntry(record string) (entry, error) {
	if record == "" {
		return entry{}, fmt.Errorf("git status has an empty record")
	}
	e := entry{kind: record[0]}
	if e.kind == '#' {
		return e, nil
	}
	n := fieldsBefore[e.kind]
	fields := strings.SplitN(record, " ", n+1)
	if n == 0 || len(fields) != n+1 {
		return e, fmt.Errorf("git status has the record %q", record)
	}
	e.path = fields[n]
	if n > 1 {
		if len(fields[1]) != 2 {
			return e, fmt.Errorf("git status has the record %q", record)
		}
		e.x, e.y, e.sub, e.modeHead = fields[1][0], fields[1][1], fields[2], fields[3]
	}
	if e.kind == '1' || e.kind == '2' {
		e.oid = fields[6]
	}
	return e, nil
}

func (e entry) submodule() bool { return strings.HasPrefix(e.sub, "S") }
