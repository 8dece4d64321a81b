//go:build linux || darwin

package datadir

import (
	"io/fs"
	"os"
	"syscall"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// requireOwn refuses a data dir that another user made, or a link of another user to one: who owns the directory can replace the keys in
// it.
func (d Dir) requireOwn() error {
	for _, look := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} {
		info, err := look(string(d))
		if err != nil {
			return nil // not there, or not to be read, which the next step explains
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Getuid() {
			return failure.Errorf("%s belongs to another user, with id %d", d, stat.Uid).
				WithHint("choose another directory with --data-dir; nothing was changed in this one")
		}
	}
	return nil
}
