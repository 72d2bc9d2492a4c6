//go:build !linux

package env

import (
	iofs "io/fs"
	"os"
)

// listed is one name of a directory with its type bits.
type listed struct {
	name string
	kind iofs.FileMode
}

// readAll lists a directory, as far as it can be read.
func readAll(root *os.Root) ([]listed, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	list := make([]listed, 0, len(entries))
	for _, d := range entries {
		list = append(list, listed{d.Name(), d.Type()})
	}
	return list, err
}
