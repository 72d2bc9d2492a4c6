package config

import (
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// decoder fills Go values from nodes. It goes on after a problem, so that all of
// them are told at once, and takes unknown keys out of the nodes. A null counts
// as absent; merging lets it clear what an earlier file set.
//
// Struct tags: json names the key; enum lists the words allowed; min and max
// bound numbers; form is one of model, url, path; rest:"true" marks the map that
// takes the keys that no field has.
type decoder struct {
	report *report
	home   string
}

// custom is a type that decodes itself.
type custom interface {
	decode(d *decoder, n *node)
}

func (d *decoder) value(n *node, v reflect.Value, tag reflect.StructTag) {
	if c, ok := v.Addr().Interface().(custom); ok {
		c.decode(d, n)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), tag)
	case reflect.Struct:
		d.object(n, v)
	case reflect.Map:
		d.mapping(n, v)
	case reflect.Slice:
		d.list(n, v, tag)
	case reflect.String:
		d.str(n, v, tag)
	case reflect.Bool:
		if d.expect(n, kindBool) {
			v.SetBool(n.text == "true")
		}
	case reflect.Int, reflect.Int64:
		d.integer(n, v, tag)
	case reflect.Float64:
		d.float(n, v)
	default:
		panic("config: no way to decode a " + v.Type().String())
	}
}

func (d *decoder) expect(n *node, k kind) bool {
	if n.kind != k {
		d.report.errorf(n.at, "%v is expected here, not %v", k, n.kind)
	}
	return n.kind == k
}

func (d *decoder) object(n *node, v reflect.Value) {
	if !d.expect(n, kindObject) {
		return
	}
	fields, rest := fieldsOf(v.Type())
	ignored := ignoredBy(v)
	for _, m := range slices.Clone(n.members) {
		i, known := fields[m.key]
		switch {
		case m.value.kind == kindNull && (known || rest >= 0):
		case known:
			d.value(m.value, v.Field(i), v.Type().Field(i).Tag)
		case rest >= 0:
			putRaw(v.Field(rest), m)
		case slices.Contains(ignored, m.key):
		default:
			d.unknown(m, fields)
			n.remove(m.key)
		}
	}
}

// fieldsOf maps keys to field numbers; rest is the field for other keys, or -1.
func fieldsOf(t reflect.Type) (fields map[string]int, rest int) {
	fields, rest = make(map[string]int, t.NumField()), -1
	for i := range t.NumField() {
		if key := t.Field(i).Tag.Get("json"); key != "" && key != "-" {
			fields[key] = i
		}
		if t.Field(i).Tag.Get("rest") != "" {
			rest = i
		}
	}
	return fields, rest
}

func ignoredBy(v reflect.Value) []string {
	if i, ok := v.Interface().(interface{ ignoredKeys() []string }); ok {
		return i.ignoredKeys()
	}
	return nil
}

func putRaw(v reflect.Value, m member) {
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	v.SetMapIndex(reflect.ValueOf(m.key), reflect.ValueOf(rawOf(m.value)))
}

func (d *decoder) unknown(m member, fields map[string]int) {
	best, at := "", 3
	for key := range fields {
		if dist := distance(key, m.key); dist < at || (dist == at && key < best) {
			best, at = key, dist
		}
	}
	switch {
	case m.key == "plugin":
		d.report.warnf(m.at, "plugins are not run by this server")
	case best != "":
		d.report.warnf(m.at, "unknown key %q; did you mean %q?", m.key, best)
	default:
		d.report.warnf(m.at, "unknown key %q", m.key)
	}
}

func (d *decoder) mapping(n *node, v reflect.Value) {
	if !d.expect(n, kindObject) {
		return
	}
	if v.IsNil() {
		v.Set(reflect.MakeMapWithSize(v.Type(), len(n.members)))
	}
	for _, m := range n.members {
		if m.value.kind == kindNull {
			continue
		}
		element := reflect.New(v.Type().Elem()).Elem()
		d.value(m.value, element, "")
		v.SetMapIndex(reflect.ValueOf(m.key), element)
	}
}

func (d *decoder) list(n *node, v reflect.Value, tag reflect.StructTag) {
	if !d.expect(n, kindArray) {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.items), len(n.items)))
	for i, item := range n.items {
		d.value(item, v.Index(i), tag)
	}
}

func (d *decoder) str(n *node, v reflect.Value, tag reflect.StructTag) {
	if !d.expect(n, kindString) {
		return
	}
	text := n.text
	switch tag.Get("form") {
	case "model":
		// An empty one is what a missing variable leaves behind.
		if provider, model, ok := strings.Cut(text, "/"); text != "" && (!ok || provider == "" || model == "") {
			d.report.errorf(n.at, `a model is written "provider/model"`)
		}
	case "url":
		if u, err := url.Parse(text); text != "" && (err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https")) {
			d.report.errorf(n.at, "an http or https URL is expected here")
		}
	case "path":
		text = expandHome(text, d.home)
		if text != "" && !filepath.IsAbs(text) {
			d.report.errorf(n.at, "an absolute path is expected here")
		}
	}
	if words := tag.Get("enum"); words != "" && !slices.Contains(strings.Split(words, ","), text) {
		d.report.errorf(n.at, "one of %s is expected here", strings.ReplaceAll(words, ",", ", "))
	}
	v.SetString(text)
}

func (d *decoder) integer(n *node, v reflect.Value, tag reflect.StructTag) {
	if !d.expect(n, kindNumber) {
		return
	}
	i, err := strconv.ParseInt(n.text, 10, v.Type().Bits())
	if err != nil {
		d.report.errorf(n.at, "a whole number is expected here")
		return
	}
	if low, err := strconv.ParseInt(tag.Get("min"), 10, 64); err == nil && i < low {
		d.report.errorf(n.at, "at least %d is expected here", low)
	}
	if high, err := strconv.ParseInt(tag.Get("max"), 10, 64); err == nil && i > high {
		d.report.errorf(n.at, "at most %d is expected here", high)
	}
	v.SetInt(i)
}

func (d *decoder) float(n *node, v reflect.Value) {
	if !d.expect(n, kindNumber) {
		return
	}
	f, err := strconv.ParseFloat(n.text, 64)
	if err != nil {
		d.report.errorf(n.at, "this number is out of range")
		return
	}
	v.SetFloat(f)
}

func (r *Raw) decode(_ *decoder, n *node) { *r = rawOf(n) }

func (t *Timeout) decode(d *decoder, n *node) {
	if n.kind == kindBool && n.text == "false" {
		*t = Timeout{Set: true, Off: true}
		return
	}
	ms, err := strconv.ParseInt(n.text, 10, 32)
	if n.kind != kindNumber || err != nil || ms <= 0 {
		d.report.errorf(n.at, "milliseconds or false are expected here")
		return
	}
	*t = Timeout{Set: true, After: time.Duration(ms) * time.Millisecond}
}

func (i *Instruction) decode(d *decoder, n *node) {
	if d.expect(n, kindString) {
		*i = Instruction{Pattern: n.text, Project: n.project, At: n.at}
	}
}

// distance counts the edits (insert, delete, replace) from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// expandHome replaces a leading ~ or $HOME by the home directory.
func expandHome(s, home string) string {
	for _, sign := range []string{"~", "$HOME"} {
		if rest, ok := strings.CutPrefix(s, sign); ok && home != "" && (rest == "" || rest[0] == '/') {
			return home + rest
		}
	}
	return s
}
