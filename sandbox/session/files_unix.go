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

// openFiles is where the system lists the open files of the calling process.
const openFiles = "/dev/fd"

// CloseFilesOnExec keeps the files that this process inherited, except for its
// standard streams, from the processes that it starts. A lock that another
// process holds by such a file would last as long as the sandbox.
func CloseFilesOnExec() error {
	entries, err := os.ReadDir(openFiles)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a system without that list
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
