package vcs

import (
	iofs "io/fs"
	"strings"
	"syscall"
	"time"
)

// identity changes whenever a file does, as far as the file system tells: the
// time of change cannot be set back by programs.
type identity struct {
	size, modified, changed int64
	inode, device           uint64
	mode                    iofs.FileMode
}

func (i identity) zero() bool { return i == identity{} }

// old tells that no further change can hide behind the same identity.
func (i identity) old(now time.Time) bool {
	return max(i.modified, i.changed) < now.Add(-settled).UnixNano()
}

func identityOf(info iofs.FileInfo) identity {
	id := identity{size: info.Size(), modified: info.ModTime().UnixNano(), mode: info.Mode()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id.inode, id.device = st.Ino, uint64(st.Dev) //nolint:unconvert // its width differs between systems
		id.changed = changeTime(st)
	}
	return id
}

func isSharedIndex(e iofs.DirEntry) bool { return strings.HasPrefix(e.Name(), "sharedindex.") }
