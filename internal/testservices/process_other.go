//go:build !linux

package main

import "syscall"

// endWithParent does nothing: only Linux can tie a child to its parent's life.
func endWithParent(*syscall.SysProcAttr) {}
