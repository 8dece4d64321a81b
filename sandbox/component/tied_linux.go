package component

import "syscall"

// Tied is how a component starts a child: a terminal's Ctrl-C does not reach it, and the kernel ends it when the thread that started it ends,
// as when the component is killed.
func Tied() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
