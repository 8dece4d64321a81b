package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// restoreTimeout bounds how long what a test made may take to go. A sandbox that takes longer is not used again.
const restoreTimeout = time.Minute

// maxIdle is how many sandboxes of a pool may wait for a test: an idle control plane still takes some processor time.
const maxIdle = 4

// Pool lends the tests of a package sandboxes, which take several seconds of processor time to start. One test has a sandbox at a
// time, so tests need not know of each other; what a test made is removed before the next one gets the sandbox. The zero value is
// empty and ready for use.
//
// A test needs a sandbox of its own, as of Start, if it changes what is there from the start: flags of components, rights, installed
// definitions, processes.
type Pool struct {
	mu   sync.Mutex
	idle []*lent // the one that was used last is last
}

// lent is a sandbox of a pool.
type lent struct {
	*Cluster
	args []string
	// initial is what is there without any test.
	initial *inventory
}

// Take returns a sandbox without nodes that was started with further flags of `gangctl-sandbox up`. When the test ends it goes back
// to the pool; if the test failed, the last lines of each component are logged, and the sandbox is taken down.
func (p *Pool) Take(t testing.TB, args ...string) *Cluster {
	t.Helper()
	s := p.takeIdle(args)
	if s == nil {
		s = startLent(t, args)
	}
	t.Cleanup(func() {
		if t.Failed() {
			s.DumpLogs(t)
			s.end(t)
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), restoreTimeout)
		defer cancel()
		if err := s.initial.restore(ctx, s.Config); err != nil {
			t.Logf("the sandbox cannot be used again: %v", err)
			s.end(t)
			return
		}
		for _, old := range p.putBack(s) {
			old.end(t)
		}
	})
	return s.Cluster
}

func (p *Pool) takeIdle(args []string) *lent {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.idle, func(s *lent) bool { return slices.Equal(s.args, args) })
	if i < 0 {
		return nil
	}
	s := p.idle[i]
	p.idle = slices.Delete(p.idle, i, i+1)
	return s
}

// putBack returns the sandboxes that are too many now.
func (p *Pool) putBack(s *lent) (surplus []*lent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, s)
	n := max(0, len(p.idle)-maxIdle)
	surplus = slices.Clone(p.idle[:n])
	p.idle = slices.Delete(p.idle, 0, n)
	return surplus
}

// Close takes down what no test uses; for the end of TestMain.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, s := range p.idle {
		errs = append(errs, s.remove())
	}
	p.idle = nil
	return errors.Join(errs...)
}

func startLent(t testing.TB, args []string) *lent {
	t.Helper()
	dir, err := os.MkdirTemp("", "gangctl-pool-") // it outlives the test
	if err != nil {
		t.Fatal(err)
	}
	s := &lent{args: args, Cluster: &Cluster{Binary: Binary(t), DataDir: filepath.Join(dir, "sandbox")}}
	if _, stderr, err := s.Run("up", append([]string{"--nodes=0"}, args...)...); err != nil {
		s.DumpLogs(t)
		s.end(t)
		t.Fatalf("sandbox up: %v\n%s", err, stderr)
	}
	s.Kubeconfig = filepath.Join(s.DataDir, "kubeconfig")
	s.load(t)
	if s.initial, err = takeInventory(t.Context(), s.Config); err != nil {
		s.end(t)
		t.Fatal(err)
	}
	return s
}

func (s *lent) end(t testing.TB) {
	if err := s.remove(); err != nil {
		t.Error(err)
	}
}

// remove takes the sandbox down and removes its directory.
func (s *lent) remove() error {
	_, stderr, err := s.Run("down")
	if err != nil {
		return fmt.Errorf("sandbox down: %w\n%s", err, stderr)
	}
	return os.RemoveAll(filepath.Dir(s.DataDir))
}
