package component

import "syscall"

// Tied is how a component starts a child: a terminal's Ctrl-C does not reach it.
func Tied() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
