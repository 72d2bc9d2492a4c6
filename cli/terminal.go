package cli

import (
	"bufio"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// terminal is the user's terminal, whatever the standard streams are. Its lines
// come while other things go on.
type terminal struct {
	file  *os.File
	lines chan string // closed at the end of input

	gone    chan struct{} // closed by Close
	reading sync.WaitGroup
}

func openTerminal() (*terminal, error) {
	file, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(errNobody, err)
	}
	return newTerminal(file), nil
}

func newTerminal(file *os.File) *terminal {
	t := &terminal{file: file, lines: make(chan string), gone: make(chan struct{})}
	t.reading.Go(t.read)
	return t
}

func (t *terminal) read() {
	defer close(t.lines)
	for s := bufio.NewScanner(t.file); s.Scan(); {
		select {
		case t.lines <- s.Text():
		case <-t.gone:
			return
		}
	}
}

func (t *terminal) write(text string) { _, _ = io.WriteString(t.file, text) } // No other place to tell it.

// Close ends the reading. Where a read cannot be cut short, as on systems whose
// terminals cannot be polled, it goes on until the program ends.
func (t *terminal) Close() error {
	close(t.gone)
	if t.file.SetReadDeadline(time.Now()) != nil {
		return nil //nolint:nilerr // it cannot be cut short, see above
	}
	t.reading.Wait()
	return t.file.Close()
}
