package process

import "syscall"

// ownGroup keeps a terminal's Ctrl-C from the process, and has the kernel end it
// when the runner is killed.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
