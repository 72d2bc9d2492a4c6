package runtime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"
)

// outputAge is how long a whole output is kept (opencode contract §11.3).
const outputAge = 7 * 24 * time.Hour

// Outputs keeps tool output that was too long for the model in files of one
// directory. It implements tool.OutputStore.
type Outputs struct{ dir string }

// NewOutputs makes the directory and removes outputs that are too old.
func NewOutputs(dir string) (*Outputs, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory for tool output: %w", err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("making the directory for tool output: %w", err)
	}
	o := &Outputs{dir: real}
	return o, o.sweep(time.Now())
}

func (o *Outputs) sweep(now time.Time) error {
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		return fmt.Errorf("reading the directory for tool output: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > outputAge {
			_ = os.Remove(filepath.Join(o.dir, e.Name())) // another process may have been first
		}
	}
	return nil
}

// Dir implements tool.OutputStore.
func (o *Outputs) Dir() string { return o.dir }

// Save implements tool.OutputStore.
func (o *Outputs) Save(_ context.Context, callID, text string) (string, error) {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, callID)
	path := filepath.Join(o.dir, fmt.Sprintf("tool_%d_%.80s", time.Now().UnixNano(), name))
	if err := renameio.WriteFile(path, []byte(text), 0o600, renameio.WithTempDir(o.dir)); err != nil {
		return "", fmt.Errorf("keeping a tool's output: %w", err)
	}
	return path, nil
}
