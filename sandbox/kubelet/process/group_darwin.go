package process

import "syscall"

// ownGroup keeps a terminal's Ctrl-C from the process.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
