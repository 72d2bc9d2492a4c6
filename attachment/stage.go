package attachment

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/switchyard-dev/switchyard/fault"
)

// stageDir is where files are until it is known what they are. Its name is
// longer than those of the directories beside it, which are of two digits.
const stageDir = "incoming"

// Staged is a file that came and was found acceptable, but is not kept yet:
// Service.Keep keeps it, Discard drops it.
type Staged struct {
	file *os.File // nil once it was published or dropped
	name string
	hash string
	size int64
	kind kind
}

// Mime is the type that the content was found to have.
func (f *Staged) Mime() string { return f.kind.mime }

// Discard drops the file. It may be called again.
func (f *Staged) Discard() {
	if f.file == nil {
		return
	}
	// Nothing is lost when this fails: the sweep looks here too.
	_ = f.file.Close()
	_ = os.Remove(f.file.Name())
	f.file = nil
}

func discard(staged []*Staged) {
	for _, f := range staged {
		f.Discard()
	}
}

// Stage reads a file to the disk, never whole into memory, and finds out what
// it is. Faults: body_too_large, unsupported_media_type, validation_failed for
// a damaged or empty one, and those of r.
func (s *Service) Stage(r io.Reader, name string) (*Staged, error) {
	file, err := os.CreateTemp(filepath.Join(s.dir, stageDir), "*") // with mode 0600
	if err != nil {
		return nil, fmt.Errorf("receiving an attachment: %w", err)
	}
	f := &Staged{file: file, name: name}
	if err := f.receive(r); err != nil {
		f.Discard()
		return nil, err
	}
	return f, nil
}

func (f *Staged) receive(r io.Reader) (err error) {
	sum := sha256.New()
	f.size, err = io.Copy(io.MultiWriter(f.file, sum), io.LimitReader(r, MaxSize+1))
	if err != nil {
		return fmt.Errorf("receiving an attachment: %w", err)
	}
	if f.size > MaxSize {
		return fault.New(fault.BodyTooLarge, "the attachment is larger than %d bytes", MaxSize).With("limit", MaxSize)
	}
	f.hash = hex.EncodeToString(sum.Sum(nil))
	f.kind, err = inspect(f.file, f.size)
	return err
}

// publish moves the file to its place. A file that is there already is replaced
// by its equal, so that one which was damaged is whole again.
func (f *Staged) publish(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	err := f.file.Sync()
	if err = errors.Join(err, f.file.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.file.Name(), path); err != nil {
		return err
	}
	f.file = nil
	return syncDir(dir)
}

// syncDir makes a new name durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

const dataScheme = "data:"

// IsData tells whether a URL holds its content itself.
func IsData(uri string) bool { return strings.HasPrefix(uri, dataScheme) }

// StageData is Stage for the content of a data: URL. One that cannot be read is
// a validation_failed fault.
func (s *Service) StageData(uri, name string) (*Staged, error) {
	bad := fault.New(fault.ValidationFailed, "the data: URL cannot be read").At("uri", "not a data: URL with base64 or percent-encoding")
	head, body, ok := strings.Cut(strings.TrimPrefix(uri, dataScheme), ",")
	if !ok {
		return nil, bad
	}
	if strings.Contains(body, "%") {
		plain, err := url.PathUnescape(body)
		if err != nil {
			return nil, bad
		}
		body = plain
	}
	if !strings.HasSuffix(head, ";base64") {
		return s.Stage(strings.NewReader(body), name)
	}
	body = strings.TrimRight(body, "=\r\n ") // padded or not
	staged, err := s.Stage(base64.NewDecoder(base64.RawStdEncoding, strings.NewReader(body)), name)
	if _, corrupt := errors.AsType[base64.CorruptInputError](err); corrupt || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, bad
	}
	return staged, err
}
