package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// replace writes a file through one beside it and a rename, for its owner only.
func replace(path string, content []byte) (failed error) {
	target, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		target = path
	case err != nil:
		return err
	}
	dir := filepath.Dir(target)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// os.CreateTemp makes it 0600.
	temp, err := os.CreateTemp(dir, ".config-*.yaml")
	if err != nil {
		return err
	}
	defer func() {
		if failed != nil {
			failed = errors.Join(failed, os.Remove(temp.Name()))
		}
	}()
	_, err = temp.Write(content)
	if err == nil {
		err = temp.Sync()
	}
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), target)
}
