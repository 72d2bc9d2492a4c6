package env

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// groupAlive reports whether a process group has a living member. Where nobody
// reaps orphans (a container without an init) dead members stay as zombies that
// still take signals, so those are looked at and not counted.
func groupAlive(group int) bool {
	if err := syscall.Kill(-group, 0); errors.Is(err, syscall.ESRCH) {
		return false
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return true
	}
	for _, name := range stats {
		if state, in := groupState(name); in == group && state != 'Z' && state != 'X' {
			return true
		}
	}
	return false
}

// groupState reads state and group of one process; the group is 0 for one that
// is gone.
func groupState(stat string) (state byte, group int) {
	text, err := os.ReadFile(stat)
	if err != nil {
		return 0, 0
	}
	// The second field is the program's name in parentheses and may hold
	// anything, parentheses and spaces too.
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return 0, 0
	}
	fields := bytes.Fields(text[end+1:])
	if len(fields) < 3 {
		return 0, 0
	}
	group, err = strconv.Atoi(string(fields[2]))
	if err != nil {
		return 0, 0
	}
	return fields[0][0], group
}
