package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// WriteFile replaces a file of the data dir in one step, readable by its owner
// only: readers see the old content or the new one.
func (d Dir) WriteFile(name string, data []byte) error {
	return explain(Replace(d.Path(name), data))
}

// Replace writes a file of any place in one step, readable by its owner only.
func Replace(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = tmp.Write(data)
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(tmp.Name())))
	}
	return nil
}

// explain adds a hint to what a file system answers.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return failure.Errorf("%w", err).WithHint("free some space, or choose a directory on another disk with --data-dir")
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return failure.Errorf("%w", err).WithHint("choose a directory that you can write to with --data-dir")
	case errors.Is(err, syscall.ENOTDIR):
		return failure.Errorf("%w", err).WithHint("choose another directory with --data-dir")
	}
	return err
}
