package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/gangctl/gangctl/pkg/cli/failure"

	"github.com/gangctl/gangctl/sandbox/credential"
	"github.com/gangctl/gangctl/sandbox/datadir"
)

// ErrNone means that a directory holds no sandbox.
var ErrNone = errors.New("no sandbox")

// Down ends the sandbox, waits until every process of it is gone, and removes
// the data dir and the kubeconfig. It returns ErrNone, and touches nothing,
// where there is no sandbox.
func (s Session) Down(ctx context.Context) error {
	marker, err := s.Dir.Marker()
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNone
	}
	if err != nil {
		return err
	}
	lock, err := s.end(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := s.removeKubeconfig(marker); err != nil {
		return err
	}
	return s.Dir.Remove()
}

// Stop ends the processes of a sandbox and waits until they are gone. Its
// objects, credentials and settings stay for another start.
func (s Session) Stop(ctx context.Context) error {
	lock, err := s.end(ctx)
	if err != nil {
		return err
	}
	return lock.Unlock()
}

// end ends every process and returns the lock that keeps others from starting.
func (s Session) end(ctx context.Context) (*datadir.Lock, error) {
	if err := s.endSupervisor(ctx); err != nil {
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	lock, err := s.Dir.WaitLock(wait, datadir.ComponentLock)
	if errors.Is(err, datadir.ErrLocked) && ctx.Err() == nil {
		return nil, failure.Errorf("components of the sandbox in %s do not end", s.Dir).
			WithHint("look for processes with %s in their command line", s.Dir)
	}
	if err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	return lock, nil
}

// endSupervisor terminates the supervisor, and kills it if it does not end.
func (s Session) endSupervisor(ctx context.Context) error {
	running, err := s.Running()
	if err != nil || !running {
		return err
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		pid, err := s.Dir.SupervisorPID()
		if err != nil {
			return err
		}
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end supervisor (process %d): %w", pid, err)
		}
		wait, cancel := context.WithTimeout(ctx, stopTimeout)
		lock, err := s.Dir.WaitLock(wait, datadir.SupervisorLock)
		cancel()
		if err == nil {
			return lock.Unlock()
		}
		if !errors.Is(err, datadir.ErrLocked) || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
	}
	return failure.Errorf("the supervisor of %s does not end", s.Dir)
}

// removeKubeconfig removes a kubeconfig outside the data dir, if it is still the
// one that `up` wrote, whatever namespace was chosen in it: without its server it
// is of no use.
func (s Session) removeKubeconfig(m *datadir.Marker) error {
	path := m.Settings.Kubeconfig
	if path == "" || path == s.Dir.Kubeconfig() {
		return nil
	}
	ours, err := os.ReadFile(credential.ComponentKubeconfig(s.Dir, credential.Admin))
	// One that cannot be read was never written, or is gone already.
	if err != nil || !credential.SameAccess(path, ours) {
		return nil //nolint:nilerr // see above
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove kubeconfig: %w", err)
	}
	return nil
}
