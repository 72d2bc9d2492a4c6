package output

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Half of what is kept of a command's output is its beginning, half its end.
const captureHalf = 512 << 10 // bytes

// Capture keeps the output of a command and passes its beginning on while it
// comes. It is written by one goroutine and read after that has ended.
type Capture struct {
	progress func(string)
	part     []byte // of a character that was not whole yet
	live     int    // bytes passed on

	head    []byte
	tail    []byte // at most twice what is kept
	dropped int    // bytes between them
}

// NewCapture makes a Capture. progress gets pieces of valid UTF-8 that never
// split a character; nil is nobody.
func NewCapture(progress func(string)) *Capture { return &Capture{progress: progress} }

// Write never fails: a command is not stopped for talking too much.
func (o *Capture) Write(p []byte) (int, error) {
	n := len(p)
	o.show(p)
	take := min(len(p), captureHalf-len(o.head))
	o.head = append(o.head, p[:take]...)
	o.tail = append(o.tail, p[take:]...)
	if len(o.tail) > 2*captureHalf {
		o.trim()
	}
	return n, nil
}

func (o *Capture) trim() {
	if over := len(o.tail) - captureHalf; over > 0 {
		o.dropped += over
		o.tail = append(o.tail[:0], o.tail[over:]...)
	}
}

// show passes whole characters on, as long as all of them will be kept.
func (o *Capture) show(p []byte) {
	if o.progress == nil || o.live >= captureHalf {
		return
	}
	text := append(o.part, p...)
	whole := len(text)
	for i := whole - 1; i >= 0 && i >= whole-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				whole = i
			}
			break
		}
	}
	o.part = append([]byte(nil), text[whole:]...)
	if whole == 0 {
		return
	}
	delta := strings.ToValidUTF8(string(text[:whole]), "\uFFFD")
	o.live += len(delta)
	o.progress(delta)
}

// Dropped is how many bytes from the middle were not kept.
func (o *Capture) Dropped() int {
	o.trim()
	return o.dropped
}

// Text gives what was kept, as valid UTF-8.
func (o *Capture) Text() string {
	o.trim()
	if o.dropped == 0 {
		return strings.ToValidUTF8(string(o.head)+string(o.tail), "\uFFFD")
	}
	return strings.ToValidUTF8(fmt.Sprintf("%s\n[%d bytes of the output were not kept.]\n%s", o.head, o.dropped, o.tail), "\uFFFD")
}
