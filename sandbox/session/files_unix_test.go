//go:build linux || darwin

package session

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A file that this process was given, such as that of a lock, is not handed on;
// the standard streams are.
func TestCloseFilesOnExec(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	given, err := syscall.Dup(int(f.Fd())) // as it comes from a shell: open across exec
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(given)
	flags := func(fd int) int {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil {
			t.Fatal(err)
		}
		return flags & unix.FD_CLOEXEC
	}
	out := flags(1)
	if flags(given) != 0 {
		t.Fatal("the test's own file is not open across exec")
	}
	if err := CloseFilesOnExec(); err != nil {
		t.Fatal(err)
	}
	if flags(given) == 0 {
		t.Error("the file would be handed on")
	}
	if flags(1) != out {
		t.Error("standard output was changed")
	}
}
