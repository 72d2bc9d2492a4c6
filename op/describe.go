package op

import (
	"net/http"
	"slices"
	"strings"

	"github.com/switchyard-dev/switchyard/fault"
	"github.com/switchyard-dev/switchyard/op/internal/bind"
)

// Description is all that can be told of an operation without running it: what
// documents, command lines and lists are made of.
type Description struct {
	Spec
	Kind   Kind
	Inputs []Input
	Output Output
	// Keyed operations take an Idempotency-Key; it is among the inputs of those
	// that keep it by themselves.
	Keyed bool
	// Failures are the error codes by HTTP status, each list sorted.
	Failures map[int][]fault.Code

	plan func() *bind.Plan
}

// Describe implements Any.
func (c *core) Describe() Description {
	return Description{
		Spec: c.spec, Kind: c.kind, Inputs: c.inputs, Output: c.output, Keyed: c.keyed() || c.ownKey(), Failures: c.failures(), plan: c.plan,
	}
}

// Tag is the group of the operation: the first segment of its name.
func (d Description) Tag() string {
	first, _, _ := strings.Cut(d.Name, ".")
	return first
}

// Fields describes the input fields in the order of their declaration.
func (d Description) Fields() []Field { return d.plan().Fields() }

// The codes that operations give because of what they are. Spec.Codes adds what
// a single one gives.
var (
	codesOfAll = []fault.Code{
		fault.HostNotAllowed, fault.OriginNotAllowed, fault.ValidationFailed, fault.UnknownParameter,
		fault.Internal, fault.StoreUnavailable, fault.Stopping,
	}
	codesOfPrivate = []fault.Code{fault.Unauthorized, fault.Forbidden, fault.RateLimited}
	codesOfBodies  = []fault.Code{fault.MalformedJSON, fault.BodyTooLarge, fault.UnsupportedMediaType}
	codesOfRaw     = []fault.Code{fault.BodyTooLarge}
	codesOfWrites  = []fault.Code{fault.StoreFull}
	codesOfHints   = []fault.Code{
		fault.DirectoryInvalid, fault.ContextAmbiguous, fault.DirectoryOutsideWorkspace,
		fault.DirectoryNotFound, fault.WorkspaceNotFound, fault.WorkspaceNotReady,
	}
)

// failures gives the documented codes by status.
func (c *core) failures() map[int][]fault.Code {
	all := slices.Concat(codesOfAll, c.spec.Codes)
	if !c.spec.Public {
		all = append(all, codesOfPrivate...)
	}
	switch {
	case c.has(InRaw):
		all = append(all, codesOfRaw...)
		if len(c.spec.Consumes) > 0 {
			all = append(all, fault.UnsupportedMediaType)
		}
	case bind.HasBody(c.spec.Method):
		all = append(all, codesOfBodies...)
	}
	if c.spec.Method != http.MethodGet {
		all = append(all, codesOfWrites...)
	}
	if c.keyed() {
		all = append(all, fault.IdempotencyConflict)
	}
	switch {
	case c.kind == KindSession:
		all = append(all, fault.SessionNotFound, fault.ContextNotAccepted)
	case c.kind == KindServer:
		all = append(all, fault.ContextNotAccepted)
	case !c.spec.Item:
		all = append(all, codesOfHints...)
	}
	if slices.ContainsFunc(c.output.Forms(), func(o Output) bool { return o.Shape == ShapeRaw }) {
		all = append(all, fault.RangeInvalid, fault.ETagMismatch)
	}
	byStatus := map[int][]fault.Code{}
	slices.Sort(all)
	for _, code := range slices.Compact(all) {
		status := fault.HTTPStatus(code)
		byStatus[status] = append(byStatus[status], code)
	}
	return byStatus
}
