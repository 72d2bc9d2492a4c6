package event

import "github.com/switchyard-dev/switchyard/id"

// Requested is one context that a stream was asked for and what became of it.
type Requested struct {
	Requested   string       `json:"requested" doc:"As the client named it."`
	Directory   string       `json:"directory,omitempty"`
	WorkspaceID id.Workspace `json:"workspaceID,omitempty"`
	Error       string       `json:"error,omitempty" doc:"Code of why it is not followed yet; it joins when it appears."`
}

// Connected is the payload of server.connected, the first frame of a stream.
// The frame's id is the position that the stream starts from.
type Connected struct {
	Version  string      `json:"version"`
	Epoch    uint32      `json:"epoch" doc:"Names the store; positions of another epoch mean nothing here."`
	Contexts []Requested `json:"contexts"`
}

// Reason says why a cursor could not be continued.
type Reason string

// The reasons of server.resync.
const (
	// ReasonMalformed: the cursor is not an event id.
	ReasonMalformed Reason = "malformed"
	// ReasonUnknown: the cursor is of another store, or of no event that ever was.
	ReasonUnknown Reason = "unknown"
	// ReasonLost: the cursor's event was lost when the machine lost power.
	ReasonLost Reason = "lost"
	// ReasonExpired: events after the cursor are not kept any more.
	ReasonExpired Reason = "expired"
)

// Resync is the payload of server.resync, the first frame of a stream whose
// cursor could not be continued: the client reads what it shows again.
type Resync struct {
	Connected
	Reason   Reason `json:"reason" enum:"malformed,unknown,lost,expired"`
	Earliest string `json:"earliest" doc:"Id of the oldest event kept, else of the newest position."`
}

// Cursor is the payload of server.cursor: the stream's position moved past
// events that its filter holds back.
type Cursor struct{}

// Lagged is the payload of server.lagged, after which the connection is aborted:
// the client read too slowly. It may resume from the frame's id.
type Lagged struct {
	Reason string `json:"reason" enum:"backlog,expired" doc:"backlog: too many bytes waited; expired: the events it was to get next are not kept any more."`
}

// Stopping is the payload of server.stopping, after which the connection is
// aborted: the server ends.
type Stopping struct{}

// The kinds that the server's streams make themselves. They pass every filter
// and are of one stream only.
var (
	ServerConnected = Define[Connected]("server.connected", Ephemeral)
	ServerResync    = Define[Resync]("server.resync", Ephemeral)
	ServerCursor    = Define[Cursor]("server.cursor", Ephemeral)
	ServerLagged    = Define[Lagged]("server.lagged", Ephemeral)
	ServerStopping  = Define[Stopping]("server.stopping", Ephemeral)
)

// Kinds lists the kinds of this package.
func Kinds() []Descriptor {
	return []Descriptor{ServerConnected, ServerResync, ServerCursor, ServerLagged, ServerStopping}
}

// control makes a frame of one stream.
func control[P any](k Kind[P], p Position, at Context, payload P) *Frame {
	d, _ := k.Draft(Origin{Context: at}, payload) // structs of strings and numbers always encode
	return newFrame(p, d)
}
