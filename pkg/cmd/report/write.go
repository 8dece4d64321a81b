package report

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/localfile"
)

// free reports a file that is there already, before anything is read for it.
func (o *Options) free() error {
	if o.File == "" || o.Overwrite {
		return nil
	}
	switch _, err := os.Lstat(o.File); {
	case err == nil:
		return o.taken()
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return failure.Errorf("write report: %w", err)
	}
}

func (o *Options) taken() error {
	return failure.Errorf("write report: %s is there already", o.File).WithHint("choose another name, or add --overwrite")
}

// private is the mode of a report's file: its owner may read it, who passes it on.
const private = 0o600

// write writes the file, which appears whole or not at all, unless it is a device, a pipe or a link. One that has appeared meanwhile stays.
func (o *Options) write(text []byte) (err error) {
	if o.Overwrite {
		if replaceable, err := localfile.Replaceable(o.File); err != nil {
			return failure.Errorf("write report: %w", err)
		} else if !replaceable {
			return o.writeThrough(text)
		}
	}
	f, err := os.CreateTemp(filepath.Dir(o.File), "."+filepath.Base(o.File)+".*") // a name that no other user can prepare
	var at *fs.PathError
	if errors.As(err, &at) { // whose path is no name that was typed
		err = fmt.Errorf("%s: %w", o.File, at.Err)
	}
	if err != nil {
		return failure.Errorf("write report: %w", err).WithHint("name a file in a directory that you may write to")
	}
	temporary := f.Name()
	defer func() {
		if removed := os.Remove(temporary); err != nil && removed != nil && !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}()
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return failure.Errorf("write report: %w", err)
	}
	if o.Overwrite {
		if err := os.Rename(temporary, o.File); err != nil {
			return failure.Errorf("write report: %w", err)
		}
		return nil
	}
	switch err := os.Link(temporary, o.File); {
	case errors.Is(err, fs.ErrExist):
		return o.taken()
	case err != nil: // a file system without links
		return o.create(text)
	}
	return nil
}

// writeThrough writes into what is there and must not be replaced.
func (o *Options) writeThrough(text []byte) error {
	err := localfile.WriteThrough(o.File, func(out io.Writer) error {
		_, err := out.Write(text)
		return err
	})
	if err != nil {
		return failure.Errorf("write report: %w", err).WithHint("name a file, or leave out --file for standard output")
	}
	return nil
}

// create writes where links are not possible.
func (o *Options) create(text []byte) error {
	f, err := os.OpenFile(o.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, private)
	if errors.Is(err, fs.ErrExist) {
		return o.taken()
	} else if err != nil {
		return failure.Errorf("write report: %w", err)
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return failure.Errorf("write report: %w", errors.Join(err, os.Remove(o.File)))
	}
	return nil
}
