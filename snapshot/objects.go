package snapshot

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"time"
)

// objects keeps contents by their hash, compressed.
type objects struct{ dir string }

func (o objects) path(hash string) string { return filepath.Join(o.dir, hash[:2], hash[2:]) }

// put keeps a content and gives its hash.
func (o objects) put(data []byte) (string, error) {
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	path := o.path(hash)
	if _, err := os.Stat(path); err == nil {
		// Young again, so that no sweep that began before takes it.
		now := time.Now()
		return hash, os.Chtimes(path, now, now)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("keeping a file: %w", err)
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestSpeed)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = place(path, packed.Bytes())
	}
	if err != nil {
		return "", fmt.Errorf("keeping a file: %w", err)
	}
	return hash, nil
}

// place writes a file in one step. It is not synced: a loss of power may damage it,
// which its hash then tells, and calls wait for nothing.
func place(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}

func (o objects) has(hash string) bool {
	_, err := os.Stat(o.path(hash))
	return err == nil
}

// get gives a content. One that is damaged is an error.
func (o objects) get(hash string) ([]byte, error) {
	packed, err := os.ReadFile(o.path(hash))
	if err != nil {
		return nil, fmt.Errorf("reading a kept file: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading a kept file: %w", err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != hash {
		return nil, fmt.Errorf("reading a kept file: %s is damaged", hash)
	}
	return data, nil
}

// sweep removes the contents that are not wanted and older than before.
func (o objects) sweep(wanted map[string]bool, before time.Time) error {
	err := filepath.WalkDir(o.dir, func(path string, d iofs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // it is gone
		}
		hash := filepath.Base(filepath.Dir(path)) + d.Name()
		if !wanted[hash] && info.ModTime().Before(before) {
			return os.Remove(path)
		}
		return nil
	})
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	return err
}
