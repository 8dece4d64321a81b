package localfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// Replaceable reports whether a path is one that a new file may take the place of, so that it appears whole or not at all: a regular
// file, or none. A link, a pipe and a device are written through, as a shell does: to replace /dev/null would take it from the whole machine.
func Replaceable(path string) (bool, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	}
	return info.Mode().IsRegular(), nil
}

// WriteThrough writes into what is there, or into a new file that its owner may read.
func WriteThrough(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
