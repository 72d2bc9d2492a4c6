//go:build !linux

package vcs

import "syscall"

// changeTime is when the file's inode changed last, in nanoseconds.
func changeTime(st *syscall.Stat_t) int64 { return st.Ctimespec.Nano() }
