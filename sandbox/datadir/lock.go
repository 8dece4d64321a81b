package datadir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrLocked means that another process holds a lock.
var ErrLocked = errors.New("locked by another process")

// Lock is a lock on a file of the data dir. The kernel drops it when the last
// process that holds the file ends, however it ends.
type Lock struct{ file *os.File }

// The locks of a data dir.
const (
	// SupervisorLock is held by the supervisor, and names its process.
	SupervisorLock = "supervisor.lock"
	// ComponentLock is inherited by every component: while it is held, at least
	// one of them is still there, even if the supervisor was killed.
	ComponentLock = "component.lock"
)

// TryLock takes a lock, or returns ErrLocked at once.
func (d Dir) TryLock(name string) (*Lock, error) {
	f, err := os.OpenFile(d.Path(name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, explain(fmt.Errorf("lock data dir: %w", err))
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Lock{file: f}, nil
}

// WaitLock takes a lock as soon as it is free, until ctx ends.
func (d Dir) WaitLock(ctx context.Context, name string) (*Lock, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		l, err := d.TryLock(name)
		if !errors.Is(err, ErrLocked) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: %w", d.Path(name), err)
		case <-tick.C:
		}
	}
}

// Held reports whether a process holds a lock.
func (d Dir) Held(name string) (bool, error) {
	if _, err := os.Stat(d.Path(name)); errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	l, err := d.TryLock(name)
	if errors.Is(err, ErrLocked) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, l.Unlock()
}

// File is the file that a child inherits to hold the lock as well.
func (l *Lock) File() *os.File { return l.file }

// SetPID names this process as the holder.
func (l *Lock) SetPID() error {
	if err := l.file.Truncate(0); err != nil {
		return explain(fmt.Errorf("name lock holder: %w", err))
	}
	if _, err := l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		return explain(fmt.Errorf("name lock holder: %w", err))
	}
	return nil
}

// Unlock gives the lock back, unless a child inherited it and lives.
func (l *Lock) Unlock() error { return l.file.Close() }

// SupervisorPID is the process that holds the supervisor's lock. It means
// something only while the lock is held.
func (d Dir) SupervisorPID() (int, error) {
	data, err := os.ReadFile(d.Path(SupervisorLock))
	if err != nil {
		return 0, fmt.Errorf("read supervisor's process id: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || pid <= 1 {
		return 0, fmt.Errorf("%s names no process: %q", d.Path(SupervisorLock), data)
	}
	return pid, nil
}
