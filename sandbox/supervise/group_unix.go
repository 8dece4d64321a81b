//go:build linux || darwin

package supervise

import "syscall"

// ownGroup keeps a terminal's Ctrl-C from the children: the supervisor stops
// them, in order.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
