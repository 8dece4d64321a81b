package localfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrTaken is why a file is not written: one is there.
var ErrTaken = errors.New("is there already")

func taken(path string) error { return fmt.Errorf("%s %w", path, ErrTaken) }

// Free is an [ErrTaken] where there is a file, also behind a link. What is none, such as a pipe or a device, is written to, and what keeps a file from
// being written is reported then.
func Free(path string) error {
	if there, err := os.Stat(path); err == nil && there.Mode().IsRegular() {
		return taken(path)
	}
	return nil
}

// private is the mode of a file that is written: its owner may read it, who passes it on.
const private = 0o600

// Write writes a file, which appears whole or not at all, unless it is a device, a pipe or a link. One that is there, or has appeared meanwhile, stays,
// which is an [ErrTaken], unless it is to be overwritten.
func Write(path string, overwrite bool, write func(io.Writer) error) (err error) {
	if !overwrite {
		if err := Free(path); err != nil {
			return err
		}
	}
	if replaceable, err := replaceable(path); err != nil {
		return err
	} else if !replaceable {
		return writeTo(path, os.O_TRUNC, write)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // a name that no other user can prepare
	var at *fs.PathError
	if errors.As(err, &at) { // whose path is no name that was typed
		err = at.Err
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	temporary := f.Name()
	defer func() {
		if removed := os.Remove(temporary); err != nil && removed != nil && !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}()
	if err := errors.Join(write(f), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if overwrite {
		return os.Rename(temporary, path)
	}
	err = os.Link(temporary, path)
	if err != nil && !errors.Is(err, fs.ErrExist) { // a file system without links
		err = writeTo(path, os.O_EXCL, write)
	}
	if errors.Is(err, fs.ErrExist) {
		return taken(path)
	}
	return err
}

// replaceable reports whether a path is one that a new file may take the place of, so that it appears whole or not at all: a regular
// file, or none. A link, a pipe and a device are written through, as a shell does: to replace /dev/null would take it from the whole machine.
func replaceable(path string) (bool, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	}
	return info.Mode().IsRegular(), nil
}

// writeTo writes into what is there, or into a new file.
func writeTo(path string, flag int, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flag, private)
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Close())
	if err != nil && flag == os.O_EXCL { // half of a file is none
		err = errors.Join(err, os.Remove(path))
	}
	return err
}
