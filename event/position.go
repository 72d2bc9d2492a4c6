package event

import (
	"cmp"
	"strings"
)

// A position has 128 bits: epoch 32 | seq 56 | sub 40.
const (
	subBits = 40
	maxSub  = 1<<subBits - 1
	maxSeq  = 1<<56 - 1

	positionPrefix = "evt_"
	positionDigits = 26
	crockford      = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
)

// A sub has an instance of 10 bits, a counter of 29 bits and a mark. Subs of an
// instance only count for the process that gave them: another server, or the
// same after a restart, has had other deltas. Counters begin at 1, so every such
// sub is greater than the 0 of the durable event it follows.
//
// The mark says that a stream was not complete up to here: it was sent a whole
// part while others were still to come, or was cut off behind. Who resumes there
// gets the durable events after seq and then the open parts, wherever that is.
const (
	markBits     = 1
	counterBits  = 29
	instanceMask = 1<<(subBits-counterBits-markBits) - 1
	maxCounter   = 1<<counterBits - 1
)

// Position is the place of an event in the one order of all events of a store,
// and its id. Durable events have Sub 0; an ephemeral one has the Seq of the
// durable event delivered before it.
type Position struct {
	// Epoch names the store; its first bit is 0.
	Epoch uint32
	// Seq is the number of the durable event, less than 2^56.
	Seq int64
	// Sub orders ephemeral events behind it, less than 2^40.
	Sub int64
}

// Compare orders positions: negative when p is before q, 0 when they are equal.
// Across epochs the order means nothing.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Epoch, q.Epoch), cmp.Compare(p.Seq, q.Seq), cmp.Compare(p.Sub, q.Sub))
}

// String is the id: "evt_" and 26 Crockford characters, whose byte order is the
// order of positions.
func (p Position) String() string {
	hi := uint64(p.Epoch)<<32 | uint64(p.Seq)>>24
	lo := uint64(p.Seq)<<subBits | uint64(p.Sub)
	var b [len(positionPrefix) + positionDigits]byte
	copy(b[:], positionPrefix)
	for i := len(b) - 1; i >= len(positionPrefix); i-- {
		b[i] = crockford[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return string(b[:])
}

// ParsePosition reads an id. It accepts exactly what String writes: no other
// spelling, and no epoch with the first bit set.
func ParsePosition(s string) (Position, bool) {
	digits, ok := strings.CutPrefix(s, positionPrefix)
	if !ok || len(digits) != positionDigits || digits[0] > '3' {
		return Position{}, false
	}
	var hi, lo uint64
	for i := range positionDigits {
		v := strings.IndexByte(crockford, digits[i])
		if v < 0 {
			return Position{}, false
		}
		hi = hi<<5 | lo>>59
		lo = lo<<5 | uint64(v)
	}
	return Position{
		Epoch: uint32(hi >> 32),
		Seq:   int64(hi&(1<<32-1)<<24 | lo>>subBits),
		Sub:   int64(lo & maxSub),
	}, true
}

// before tells whether p stands before q.
func (p Position) before(q Position) bool { return p.Compare(q) < 0 }

// marked tells whether p is the id of a frame at which a stream was incomplete.
func (p Position) marked() bool { return p.Sub&1 != 0 }

// mark gives a marked position after p and before any later event of its seq
// that a stream which resumes there would still want.
func (p Position) mark() Position {
	p.Sub += 1 + p.Sub&1
	return p
}

// instance gives the process that numbered an ephemeral event.
func (p Position) instance() int64 { return p.Sub >> (counterBits + markBits) }

// subOf makes the sub of an ephemeral event.
func subOf(instance, counter int64) int64 {
	return instance<<(counterBits+markBits) | counter<<markBits
}
