package env

import (
	"bytes"
	"encoding/binary"
	iofs "io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// listed is one name of a directory with its type bits.
type listed struct {
	name string
	kind iofs.FileMode
}

// Layout of a linux_dirent64: inode 8, offset 8, length 2, type 1, name.
const (
	direntLength = 16
	direntType   = 18
	direntName   = 19
)

// readAll lists a directory, as far as it can be read. os.File.ReadDir asks for
// the metadata of each name when the file belongs to an os.Root, which makes
// walking twice as slow; the kernel tells the types with the names already.
func readAll(root *os.Root) ([]listed, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	conn, err := dir.SyscallConn()
	if err != nil {
		return nil, err
	}
	var list []listed
	buf := make([]byte, 16<<10)
	for {
		var n int
		var readErr error
		if err := conn.Control(func(fd uintptr) { n, readErr = unix.ReadDirent(int(fd), buf) }); err != nil {
			return list, err
		}
		if isErrno(readErr, unix.EINTR) {
			continue
		}
		if readErr != nil || n <= 0 {
			return list, readErr
		}
		list = appendDirents(list, buf[:n], root)
	}
}

// appendDirents reads the records of one answer of the kernel.
func appendDirents(list []listed, buf []byte, root *os.Root) []listed {
	for len(buf) > direntName {
		size := int(binary.NativeEndian.Uint16(buf[direntLength:]))
		if size <= direntName || size > len(buf) {
			return list
		}
		name, _, _ := bytes.Cut(buf[direntName:size], []byte{0})
		kind := buf[direntType]
		buf = buf[size:]
		if string(name) == "." || string(name) == ".." || len(name) == 0 {
			continue
		}
		if d, ok := typedEntry(string(name), kind, root); ok {
			list = append(list, d)
		}
	}
	return list
}

// typedEntry translates a type; where the file system does not tell it, it is
// asked for, and false is given when the name is gone.
func typedEntry(name string, kind byte, root *os.Root) (listed, bool) {
	switch kind {
	case unix.DT_REG:
		return listed{name, 0}, true
	case unix.DT_DIR:
		return listed{name, iofs.ModeDir}, true
	case unix.DT_LNK:
		return listed{name, iofs.ModeSymlink}, true
	case unix.DT_FIFO:
		return listed{name, iofs.ModeNamedPipe}, true
	case unix.DT_SOCK:
		return listed{name, iofs.ModeSocket}, true
	case unix.DT_CHR:
		return listed{name, iofs.ModeDevice | iofs.ModeCharDevice}, true
	case unix.DT_BLK:
		return listed{name, iofs.ModeDevice}, true
	}
	info, err := root.Lstat(name)
	if err != nil {
		return listed{}, false
	}
	return listed{name, info.Mode().Type()}, true
}
