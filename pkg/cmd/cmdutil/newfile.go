package cmdutil

import (
	"errors"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/localfile"
)

// FreeFile refuses the file of a flag that is there already, before anything is read for it. An empty path is that of no file.
func FreeFile(op, path string, overwrite bool) error {
	if path == "" || overwrite {
		return nil
	}
	return WrittenFile(op, localfile.Free(path))
}

// WrittenFile is the error of a file that a flag names and that could not be written; nil for none.
func WrittenFile(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, localfile.ErrTaken):
		return failure.Errorf("%s: %w", op, err).WithHint("choose another name, or add --overwrite")
	}
	return failure.Errorf("%s: %w", op, err).WithHint("name a file in a directory that you may write to")
}
