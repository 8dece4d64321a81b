//go:build linux || darwin

package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// openFiles is where the system lists the open files of the process that asks.
const openFiles = "/dev/fd"

// CloseFilesOnExec keeps the files that this process inherited, beside its
// standard streams, from those that it starts. A lock that somebody holds by
// such a file would last as long as the sandbox.
func CloseFilesOnExec() error {
	entries, err := os.ReadDir(openFiles)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a system that does not tell
	}
	if err != nil {
		return fmt.Errorf("list open files: %w", err)
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > syscall.Stderr {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}
