package supervise

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/gangctl/gangctl/sandbox/datadir"
)

// Whoever waits for the supervisor's locks removes the data dir: every end must be written before they are released.
func TestEveryEndIsWrittenWhenAllAreStopped(t *testing.T) {
	dir := datadir.Dir(t.TempDir())
	if err := os.Mkdir(dir.Path("log"), 0o700); err != nil {
		t.Fatal(err)
	}
	untilClosed := filepath.Join(t.TempDir(), "component")
	if err := os.WriteFile(untilClosed, []byte("#!/bin/sh\ncat >/dev/null\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := dir.TryLock(datadir.ComponentLock)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	s := &supervisor{dir: dir, exe: untilClosed, lock: lock, log: slog.New(slog.DiscardHandler), board: &board{dir: dir}}
	for i := range 20 {
		if err := s.start(spec{name: fmt.Sprint("component-", i)}); err != nil {
			t.Fatal(err)
		}
	}
	s.stopAll()
	state, err := ReadState(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(state.Ended()); got != 20 {
		t.Errorf("%d of 20 ends are written", got)
	}
}
