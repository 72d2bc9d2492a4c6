package bind

import (
	"encoding"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/switchyard-dev/switchyard/fault"
)

// Query reads a query string; nil when there is none.
func Query(r *http.Request) (url.Values, error) {
	if r.URL.RawQuery == "" {
		return nil, nil
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fault.New(fault.ValidationFailed, "the query string is not percent-encoded properly").At(InQuery, "not percent-encoded properly")
	}
	return q, nil
}

// PathValue gives a path parameter, decoded where the path as sent holds
// escapes that a decoded path would lose. What is not UTF-8 becomes U+FFFD: no
// identifier has that, so it is as unknown as it should be.
func PathValue(r *http.Request, path string, tail bool, name string) string {
	params := PathParams(path)
	if tail && name == params[len(params)-1] {
		name = "*"
	}
	v := r.PathValue(name)
	if r.URL.RawPath != "" {
		if decoded, err := url.PathUnescape(v); err == nil {
			v = decoded
		}
	}
	return strings.ToValidUTF8(v, "\uFFFD")
}

// checkQuery finds the parameters that nobody declared.
func (p *Plan) checkQuery(query url.Values, bad *findings) {
	if len(query) == 0 {
		return
	}
	known := p.knownQuery()
	for name := range query {
		if slices.Contains(known, name) {
			continue
		}
		bad.unknown = true
		where := InQuery + "." + name
		switch {
		case slices.ContainsFunc(p.fields, func(f planned) bool { return f.Name == name && f.In == InBody }):
			bad.add(where, "unknown query parameter: %q stands in the JSON body", name)
		case len(known) == 0:
			bad.add(where, "unknown query parameter: this operation takes none")
		default:
			bad.add(where, "unknown query parameter, the nearest known one is %q", nearest(name, known))
		}
	}
}

// knownQuery lists the declared parameters first, then their synonyms, then the
// hints, so that ties of nearness go to what the document shows.
func (p *Plan) knownQuery() []string {
	var known []string
	for i := range p.fields {
		if p.fields[i].In == InQuery {
			known = append(known, p.fields[i].Name)
		}
	}
	for _, from := range slices.Sorted(maps.Keys(p.Aliases)) {
		if slices.Contains(known, p.Aliases[from]) {
			known = append(known, from)
		}
	}
	return append(known, p.Context...)
}

// bindValues reads one parameter from the strings given for it.
func (p *Plan) bindValues(v reflect.Value, f *planned, given []string, bad *findings) {
	where := f.In + "." + f.Name
	target := v.FieldByIndex(f.Field.Index)
	element, list := ListOf(f.Field.Type)
	switch {
	case len(given) == 0 && f.Required:
		bad.add(where, "required")
	case len(given) == 0:
		setDefault(v, f)
	case list:
		p.bindList(target, element, f, given, bad)
	case len(given) > 1 && f.In != InHeader:
		bad.add(where, "given more than once")
	default:
		value, err := setScalar(target, given[0])
		if err != nil {
			bad.add(where, "%s", err)
			return
		}
		// Identifiers in a path are not validated: a malformed one is as unknown
		// as any other, and the handler says so.
		if f.In != InPath || target.Kind() != reflect.String {
			p.validate(f, where, value, bad)
		}
	}
}

func (p *Plan) bindList(target reflect.Value, element reflect.Type, f *planned, given []string, bad *findings) {
	if f.Comma {
		given = strings.Split(strings.Join(given, ","), ",")
	}
	where := f.In + "." + f.Name
	values := make([]any, 0, len(given))
	slice := reflect.MakeSlice(f.Field.Type, 0, len(given))
	for i, s := range given {
		item := reflect.New(element).Elem()
		value, err := setScalar(item, s)
		if err != nil {
			bad.add(fmt.Sprintf("%s[%d]", where, i), "%s", err)
			return
		}
		values = append(values, value)
		slice = reflect.Append(slice, item)
	}
	target.Set(slice)
	p.validate(f, where, values, bad)
}

// setScalar reads s into v and gives it as JSON would for the validator, which
// knows all numbers as float64.
func setScalar(v reflect.Value, s string) (any, error) {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if t, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if t.UnmarshalText([]byte(s)) != nil {
			return nil, fmt.Errorf("expected %s", v.Type().Name())
		}
		return s, nil
	}
	switch v.Kind() {
	case reflect.Bool:
		if s != "true" && s != "false" && s != "1" && s != "0" {
			return nil, fmt.Errorf("%s: true or false", validation.MsgExpectedBoolean)
		}
		v.SetBool(s == "true" || s == "1")
		return v.Bool(), nil
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(s, v.Type().Bits())
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%s", validation.MsgExpectedNumber)
		}
		v.SetFloat(f)
		return f, nil
	case reflect.String:
		if !utf8.ValidString(s) {
			return nil, fmt.Errorf("not valid UTF-8")
		}
		v.SetString(s)
		return s, nil
	}
	return setInteger(v, s)
}

func setInteger(v reflect.Value, s string) (any, error) {
	if v.CanUint() {
		n, err := strconv.ParseUint(s, 10, v.Type().Bits())
		if err != nil {
			return nil, fmt.Errorf("%s", validation.MsgExpectedInteger)
		}
		v.SetUint(n)
		return float64(n), nil
	}
	n, err := strconv.ParseInt(s, 10, v.Type().Bits())
	if err != nil {
		return nil, fmt.Errorf("%s", validation.MsgExpectedInteger)
	}
	v.SetInt(n)
	return float64(n), nil
}
