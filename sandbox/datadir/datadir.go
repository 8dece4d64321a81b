// Package datadir is the one directory in which everything of a sandbox lives:
// its settings, credentials, storage and logs.
package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// Dir is the absolute path of a data dir.
type Dir string

// DefaultPath is a sandbox's directory by default:
// $XDG_STATE_HOME/gangctl/sandbox, or ~/.local/state/gangctl/sandbox (XDG Base
// Directory Specification).
func DefaultPath(getenv func(string) string) string {
	state := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		state = filepath.Join(getenv("HOME"), ".local", "state")
	}
	return filepath.Join(state, "gangctl", "sandbox")
}

// New makes path absolute. It touches nothing.
func New(path string) (Dir, error) {
	if path == "" {
		return "", failure.Usagef("--data-dir must not be empty")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("data dir %s: %w", path, err)
	}
	return Dir(abs), nil
}

// Path joins elements under the data dir.
func (d Dir) Path(elem ...string) string {
	return filepath.Join(append([]string{string(d)}, elem...)...)
}

// Log is the file that a component writes to.
func (d Dir) Log(component string) string { return d.Path("log", component+".log") }

// Kubeconfig is the default place of the administrator's kubeconfig.
func (d Dir) Kubeconfig() string { return d.Path("kubeconfig") }

// Claim makes the data dir this sandbox's own: a directory that does not exist
// or is empty is taken, one that a sandbox of the same version made is kept,
// anything else is refused untouched. It returns the marker that was found, or
// nil for a new one.
func (d Dir) Claim(now Marker) (*Marker, error) {
	if err := d.requireOwn(); err != nil {
		return nil, err
	}
	found, err := d.Marker()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := d.requireEmpty(); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	default:
		if err := found.RequireSameVersion(d, now); err != nil {
			return nil, err
		}
		now.Ports = found.Ports
	}
	for _, sub := range []string{"", "log", "pki"} {
		if err := os.MkdirAll(d.Path(sub), 0o700); err != nil {
			return nil, explain(fmt.Errorf("create data dir: %w", err))
		}
		if err := os.Chmod(d.Path(sub), 0o700); err != nil { // one that was there keeps its mode
			return nil, explain(fmt.Errorf("create data dir: %w", err))
		}
	}
	if err := d.WriteMarker(now); err != nil {
		return nil, err
	}
	return found, nil
}

// Remove deletes the data dir with everything in it. It refuses a directory
// without a marker.
func (d Dir) Remove() error {
	if _, err := d.Marker(); err != nil {
		return err
	}
	if err := os.RemoveAll(string(d)); err != nil {
		return fmt.Errorf("remove data dir: %w", err)
	}
	return nil
}

func (d Dir) requireEmpty() error {
	entries, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return explain(fmt.Errorf("read data dir: %w", err))
	}
	if len(entries) > 0 {
		return failure.Errorf("%s is not empty and no sandbox made it", d).
			WithHint("choose another directory with --data-dir; nothing was changed in this one")
	}
	return nil
}
