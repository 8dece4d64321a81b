package terminal

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// open opens a pseudo terminal (pty(7)): what is written to one side can be read from the other.
func open(columns, rows int) (ours, theirs *os.File, err error) {
	ours, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open a pseudo terminal: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("set up a pseudo terminal: %w", err)
			ours.Close()
		}
	}()
	fd := int(ours.Fd())
	if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, err
	}
	size := &unix.Winsize{Row: uint16(rows), Col: uint16(columns)}
	if err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size); err != nil {
		return nil, nil, err
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	return ours, theirs, err
}

// ownTerminal makes file 0 of a process the terminal that controls it.
func ownTerminal() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true, Setctty: true} }
