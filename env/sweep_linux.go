package env

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// sweepOnce signals each marked process and gives their number. A process gets
// TERM once, and KILL in each round with kill.
func sweepOnce(dead func(Mark) bool, kill bool, seen map[int]bool) int {
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return 0
	}
	left := 0
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil || pid == os.Getpid() || !ownProcess(name) || !marked(name, dead) {
			continue
		}
		left++
		switch {
		case kill:
			signalMarked(pid, name, dead, unix.SIGKILL)
		case !seen[pid]:
			signalMarked(pid, name, dead, unix.SIGTERM)
		}
		seen[pid] = true
	}
	return left
}

// ownProcess tells whether a process is of this user.
func ownProcess(name string) bool {
	info, err := os.Stat(name)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

// marked reads a process's environment. That of a zombie is empty.
func marked(name string, dead func(Mark) bool) bool {
	data, err := os.ReadFile(name)
	if err != nil {
		return false
	}
	for pair := range bytes.SplitSeq(data, []byte{0}) {
		if value, ok := bytes.CutPrefix(pair, []byte(callVar+"=")); ok {
			m, ok := parseMark(string(value))
			return ok && dead(m)
		}
	}
	return false
}

// signalMarked signals exactly the process whose environment was read: the
// number is held, then the environment is looked at once more, since the number
// may have gone to another process in between.
func signalMarked(pid int, name string, dead func(Mark) bool, s unix.Signal) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // it is gone
	}
	defer func() { _ = unix.Close(fd) }()
	if marked(name, dead) {
		_ = unix.PidfdSendSignal(fd, s, nil, 0) // one that ended meanwhile needs no signal
	}
}
