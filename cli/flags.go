package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/switchyard-dev/switchyard/cli/internal/jsonflag"
	"github.com/switchyard-dev/switchyard/cli/internal/remote"
	"github.com/switchyard-dev/switchyard/op"
	"github.com/switchyard-dev/switchyard/op/schema"
)

// inputFlags are the flags of an operation's input.
type inputFlags struct {
	values map[string]*jsonflag.Value // by member of the input
	names  map[string]string          // flag to member
	set    *pflag.FlagSet
}

// addInput adds a flag for each member of an operation's input: the parameters
// of its path, its fields, and the short spellings of nested members (such as
// "text" for "prompt.text"). A member with the name of a flag that is there
// already gets "input-" before it.
func addInput(cmd *cobra.Command, d op.Description, stdin io.Reader) *inputFlags {
	in := &inputFlags{values: map[string]*jsonflag.Value{}, names: map[string]string{}, set: cmd.Flags()}
	taken := func(name string) bool { return cmd.Flag(name) != nil }
	fields := d.Fields()
	for _, name := range remote.PathNames(d.Path) {
		if !slices.ContainsFunc(fields, func(f op.Field) bool { return f.Name == name }) {
			in.add(cmd, op.Field{Name: name, Type: jsonflag.TypeString, Required: true}, &jsonflag.Value{Kind: jsonflag.TypeString}, taken)
		}
	}
	for _, f := range fields {
		v := &jsonflag.Value{Kind: f.Type, Stdin: stdin}
		if f.Type == jsonflag.TypeArray {
			v.Kind, v.List = f.Items, true
			if !jsonflag.Scalar(v.Kind) {
				v.Kind = jsonflag.TypeObject
			}
		}
		in.add(cmd, f, v, taken)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Aliases)) {
		f, v, ok := shortcut(d, name)
		if ok && in.values[name] == nil {
			v.Stdin = stdin
			in.add(cmd, f, v, taken)
		}
	}
	return in
}

// shortcut describes an alias that stands for a nested member.
func shortcut(d op.Description, name string) (op.Field, *jsonflag.Value, bool) {
	target := d.Aliases[name]
	first, rest, nested := strings.Cut(target, ".")
	if !nested || strings.ContainsAny(name, ".*") {
		return op.Field{}, nil, false
	}
	i := slices.IndexFunc(d.Inputs, func(f op.Input) bool { return f.Name == first })
	if i < 0 {
		return op.Field{}, nil, false
	}
	v := &jsonflag.Value{Kind: jsonflag.TypeObject}
	if t, ok := memberOf(d.Inputs[i].Field.Type, rest); ok {
		v.Kind, v.List = jsonflag.KindOf(t)
	}
	return op.Field{Name: name, Type: v.Kind, Doc: "Short for " + target + "."}, v, true
}

// memberOf gives the type of a member inside of an object, by its dotted path.
func memberOf(t reflect.Type, path string) (reflect.Type, bool) {
	for name := range strings.SplitSeq(path, ".") {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		list := schema.PropertiesOf(t)
		i := slices.IndexFunc(list, func(p schema.Property) bool { return p.Name == name })
		if i < 0 {
			return nil, false
		}
		t = list[i].Field.Type
	}
	return t, true
}

func (in *inputFlags) add(cmd *cobra.Command, f op.Field, v *jsonflag.Value, taken func(string) bool) {
	name := f.Name
	if taken(name) {
		name = "input-" + name
	}
	in.values[f.Name], in.names[name] = v, f.Name
	flag := in.set.VarPF(v, name, "", usageOf(f, v))
	switch {
	case v.Kind == jsonflag.TypeBoolean && !v.List:
		flag.NoOptDefVal = "true"
	case len(f.Enum) > 0:
		complete(cmd, name, f.Enum)
	case jsonflag.Scalar(v.Kind) && strings.HasSuffix(name, "ID"):
		complete(cmd, name, nil)
	}
}

// complete offers words as the values of a flag, and no files.
func complete(cmd *cobra.Command, flag string, words []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	if err != nil { // The flag exists and has no other function.
		panic("cli: " + err.Error())
	}
}

func usageOf(f op.Field, v *jsonflag.Value) string {
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(strings.ReplaceAll(f.Doc, "`", ""), "."))
	if len(f.Enum) > 0 {
		separate(&b)
		b.WriteString("one of " + strings.Join(f.Enum, ", "))
	}
	if !jsonflag.Scalar(v.Kind) {
		separate(&b)
		b.WriteString("`JSON` or @file")
	}
	if v.List {
		separate(&b)
		b.WriteString("may repeat")
	}
	if f.Default != nil {
		separate(&b)
		fmt.Fprintf(&b, "default %v", f.Default)
	}
	if f.Required {
		b.WriteString(" (required)")
	}
	return strings.TrimSpace(b.String())
}

func separate(b *strings.Builder) {
	if b.Len() > 0 {
		b.WriteString("; ")
	}
}

// spellings lets flags be written as --session-id or --sessionid for --sessionID.
func spellings(set *pflag.FlagSet) {
	known := map[string]string{}
	set.VisitAll(func(f *pflag.Flag) { known[fold(f.Name)] = f.Name })
	set.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if canonical, ok := known[fold(name)]; ok {
			name = canonical
		}
		return pflag.NormalizedName(name)
	})
}

func fold(name string) string { return strings.ToLower(strings.ReplaceAll(name, "-", "")) }

// given collects the members that were given: those of a JSON object, and over
// them the flags.
func (in *inputFlags) given(object []byte) (map[string]any, error) {
	values := map[string]any{}
	if len(object) > 0 {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(object, &members); err != nil || members == nil {
			return nil, remote.Usagef("--json needs one JSON object with the members of the input")
		}
		for name, raw := range members {
			values[name] = raw
		}
	}
	in.set.Visit(func(f *pflag.Flag) {
		if name, ok := in.names[f.Name]; ok {
			values[name] = in.values[name].JSON()
		}
	})
	return values, nil
}
