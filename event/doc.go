// Package event is how the server tells what happens: kinds of events, their
// positions, the bus that numbers and shares them, and the streams that clients
// follow (design §7, promises E1 to E12).
//
// # Durable and ephemeral
//
// A durable event is a row that the same transaction writes as the change it
// tells of (Kind.Append); the store numbers the rows in the order of commits and
// hands them to Bus.Commit. An ephemeral event (a delta, a control frame) exists
// in memory only (Bus.Publish). Both get a Position, which is the event's id.
//
// # The ring
//
// The bus encodes each event once, as the bytes of its SSE frame, and keeps the
// newest frames in one ring that all streams read. A stream is a place in the
// ring and a channel that wakes it, so publishers never wait for readers and a
// slow reader costs no memory. Publishers look for streams through an index by
// context and session: an event wakes those that want it and touches no other.
//
// # Three ways to start
//
// A stream without a cursor starts at the newest event. A cursor that the ring
// covers continues in the ring: every event after it comes, deltas too. Any
// other valid cursor is served the durable events after it, from the log and then
// from the ring, and then every part still open as a whole (Bus.OpenPart), as the
// deltas are gone. A stream that falls out of the ring because its client is slow
// goes the third way too, without a new connection. A cursor that cannot be
// continued starts at the newest event with server.resync, which says so.
package event
