//go:build !linux

package env

import (
	"errors"
	"syscall"
)

// groupAlive reports whether a process group has a member.
func groupAlive(group int) bool {
	return !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH)
}
