package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/mattn/go-isatty"

	"github.com/switchyard-dev/switchyard/cli/internal/remote"
	"github.com/switchyard-dev/switchyard/op"
)

// The forms of output.
const (
	formatJSON  = "json"
	formatTable = "table"
	formatRaw   = "raw"
)

func formats() []string { return []string{formatJSON, formatTable, formatRaw} }

// isTerminal reports whether a stream of the process is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// printAnswer writes an answer of an operation: JSON in the given format, events
// and lines one by one, anything else as it is. It reads the body and leaves it
// open.
func printAnswer(w io.Writer, res *http.Response, format string) error {
	if res.StatusCode == http.StatusNoContent {
		return nil
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch kind {
	case op.TypeStream:
		for e, err := range remote.Frames(res.Body) {
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(w, e.Data); err != nil {
				return err
			}
		}
		return nil
	case op.TypeJSON:
		data, err := io.ReadAll(res.Body)
		if err != nil {
			return remote.ErrBrokeOff
		}
		return printJSON(w, bytes.TrimSpace(data), format)
	}
	_, err := io.Copy(w, res.Body)
	return err
}

// printJSON writes JSON. The empty format is json on a terminal, else raw.
func printJSON(w io.Writer, data []byte, format string) error {
	if format == "" && !isTerminal(w) {
		format = formatRaw
	}
	switch format {
	case formatRaw:
		_, err := w.Write(append(data, '\n'))
		return err
	case formatTable:
		if done, err := printTable(w, data); done || err != nil {
			return err
		}
	}
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		return fmt.Errorf("the answer is no JSON: %w", err)
	}
	b.WriteByte('\n')
	_, err := w.Write(b.Bytes())
	return err
}

// printTable writes the data of an answer as a table when it is a list of
// objects; it reports false for other shapes. The columns are the members that
// hold neither lists nor objects, in the order in which they first appear.
func printTable(w io.Writer, answer []byte) (bool, error) {
	var envelope struct {
		Data []json.RawMessage `json:"data"`
	}
	if json.Unmarshal(answer, &envelope) != nil || envelope.Data == nil {
		return false, nil //nolint:nilerr // no list: it is printed as it is
	}
	var columns []string
	rows := make([]map[string]string, 0, len(envelope.Data))
	for _, item := range envelope.Data {
		row, order, ok := cells(item)
		if !ok {
			return false, nil
		}
		for _, name := range order {
			if !slices.Contains(columns, name) {
				columns = append(columns, name)
			}
		}
		rows = append(rows, row)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(columns, "\t"))
	for _, row := range rows {
		line := make([]string, 0, len(columns))
		for _, name := range columns {
			line = append(line, cmp.Or(row[name], "-"))
		}
		fmt.Fprintln(tw, strings.Join(line, "\t"))
	}
	return true, tw.Flush()
}

// cells gives the plain members of an object with their order.
func cells(item []byte) (row map[string]string, order []string, ok bool) {
	d := json.NewDecoder(bytes.NewReader(item))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, false
	}
	row = map[string]string{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, nil, false
		}
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			return nil, nil, false
		}
		if text, plain := cell(raw); plain {
			row[name.(string)] = text
			order = append(order, name.(string))
		}
	}
	return row, order, true
}

func cell(raw json.RawMessage) (string, bool) {
	switch raw[0] {
	case '{', '[':
		return "", false
	case '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return "", false
		}
		return printable(clip(oneLine(s), 60)), true
	case 'n':
		return "", true
	}
	return string(raw), true
}
