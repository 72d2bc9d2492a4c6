package main

import "syscall"

// endWithParent makes the kernel interrupt the child when this process is gone,
// even if it was killed.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }
