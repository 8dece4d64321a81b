//go:build linux || darwin

package session

import "syscall"

// detached gives the supervisor a session of its own: it lives on when the
// terminal closes.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
