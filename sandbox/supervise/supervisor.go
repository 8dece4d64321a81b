// Package supervise is the process that keeps a sandbox's components: it starts
// them in the order of their dependencies, reports progress, and ends them all
// when it ends, whichever way.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gangctl/gangctl/pkg/cli/failure"

	"github.com/gangctl/gangctl/sandbox/addon"
	"github.com/gangctl/gangctl/sandbox/component"
	"github.com/gangctl/gangctl/sandbox/credential"
	"github.com/gangctl/gangctl/sandbox/datadir"
)

// leftoverTimeout is how long components of a killed supervisor may take to go.
const leftoverTimeout = 15 * time.Second

// errDied is why a start ends when a component ends.
var errDied = errors.New("a component ended")

type supervisor struct {
	dir         datadir.Dir
	exe         string
	log         *slog.Logger
	lock        *datadir.Lock
	plan        plan
	credentials *credential.Set
	addons      []runningAddon
	prober      *prober
	board       *board
	// abort ends the start because a component ended.
	abort context.CancelCauseFunc

	mu        sync.Mutex
	processes []*process
	stopping  bool
	// watchers write state.json when their component ends.
	watchers sync.WaitGroup
}

// Run supervises the sandbox of a claimed data dir until ctx ends. onReady is
// called once, when the cluster can be used. A failure is also in state.json, if
// the disk takes it.
func Run(ctx context.Context, dir datadir.Dir, log *slog.Logger, onReady func()) error {
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	own, err := dir.WaitLock(short, datadir.SupervisorLock)
	if err != nil {
		return fmt.Errorf("another supervisor runs: %w", err)
	}
	defer own.Unlock()
	if err := own.SetPID(); err != nil {
		return err
	}
	s := &supervisor{dir: dir, log: log, board: &board{dir: dir, now: State{PID: os.Getpid(), Phase: Starting, Started: time.Now()}}}
	if err := s.run(ctx, onReady); err != nil {
		f := failure.From(err)
		log.Error("sandbox failed", "error", f.Message)
		return errors.Join(err, s.board.change(func(st *State) { st.Phase, st.Error, st.Hint = Failed, f.Message, f.Hint }))
	}
	return nil
}

func (s *supervisor) run(ctx context.Context, onReady func()) error {
	if err := s.prepare(ctx); err != nil {
		return err
	}
	defer s.lock.Unlock()
	defer s.stopAll()
	starting, abort := context.WithCancelCause(ctx)
	s.abort = abort
	limited, cancel := context.WithTimeout(starting, startTimeout)
	defer cancel()
	if err := s.bringUp(limited); err != nil {
		if ctx.Err() != nil {
			return nil // stopped before it was up
		}
		if cause := context.Cause(starting); cause != nil {
			return cause
		}
		return err
	}
	err := s.board.change(func(st *State) {
		st.Phase, st.Step, st.Took = Ready, "", time.Since(st.Started)
		st.degradeIfEnded()
	})
	if err != nil {
		return err
	}
	s.log.Info("ready")
	onReady()
	<-ctx.Done()
	return nil
}

// takeLock takes the lock that components inherit. Those of a supervisor that was killed end a moment after it.
func (s *supervisor) takeLock(ctx context.Context) (err error) {
	if s.lock, err = s.dir.TryLock(datadir.ComponentLock); !errors.Is(err, datadir.ErrLocked) {
		return err
	}
	if err := s.board.step("waiting for leftovers of the last run to end"); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, leftoverTimeout)
	defer cancel()
	if s.lock, err = s.dir.WaitLock(wait, datadir.ComponentLock); err != nil {
		return fmt.Errorf("components of the last run do not end: %w", err)
	}
	return nil
}

// prepare makes everything that components find on disk.
func (s *supervisor) prepare(ctx context.Context) error {
	err := s.takeLock(ctx)
	if err != nil {
		return err
	}
	if err := s.board.step("making certificates"); err != nil {
		return err
	}
	if s.exe, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	marker, err := s.dir.Marker()
	if err != nil {
		return err
	}
	if s.credentials, err = credential.Ensure(s.dir); err != nil {
		return err
	}
	if marker.Ports, err = choosePorts(marker.Ports, marker.Settings.Port, addon.Chosen(marker.Settings.With)...); err != nil {
		return err
	}
	if err := s.dir.WriteMarker(*marker); err != nil {
		return err
	}
	if err := s.credentials.WriteKubeconfigs(marker.Settings.Kubeconfig, marker.Ports[portAPIServer]); err != nil {
		return err
	}
	// A socket without a server would make etcd think that it runs already.
	if err := os.RemoveAll(s.dir.Path("etcd.sock")); err != nil {
		return fmt.Errorf("remove old socket: %w", err)
	}
	s.plan = plan{dir: s.dir, settings: marker.Settings, ports: marker.Ports}
	if s.prober, err = newProber(s.dir, s.credentials); err != nil {
		return err
	}
	return s.readAddons()
}

// start starts a component and watches it.
func (s *supervisor) start(sp spec) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return fmt.Errorf("start %s: the sandbox is being stopped", sp.name)
	}
	p, err := start(s.dir, s.exe, s.lock, sp)
	if err != nil {
		return err
	}
	s.processes = append(s.processes, p)
	s.watchers.Go(func() { s.watch(p) })
	return s.board.change(func(st *State) {
		st.Components = append(st.Components, Component{Name: p.name, PID: p.cmd.Process.Pid})
	})
}

// watch reports a component that ends. Nothing is restarted: who tests against a
// sandbox must see that it broke.
func (s *supervisor) watch(p *process) {
	<-p.done
	s.mu.Lock()
	expected := s.stopping
	s.mu.Unlock()
	err := s.board.change(func(st *State) {
		for i := range st.Components {
			if st.Components[i].PID == p.cmd.Process.Pid {
				st.Components[i].Exit = p.exit
			}
		}
		if !expected {
			st.degradeIfEnded()
		}
	})
	if err != nil {
		s.log.Error("state is not written", "error", err)
	}
	if expected {
		return
	}
	s.log.Error("component ended", "component", p.name, "exit", p.exit)
	s.abort(s.deathOf(p))
}

func (s *supervisor) deathOf(p *process) error {
	log := s.dir.Log(p.name)
	tail := LastLines(log, 8)
	f := failure.Errorf("%w: %s: %s; its last lines in %s:\n%s", errDied, p.name, p.exit, log, tail)
	if strings.Contains(tail, syscall.ENOSPC.Error()) {
		return f.WithHint("free some space, or choose a directory on another disk with --data-dir")
	}
	return f.WithHint("start again, or start afresh after: gangctl-sandbox down --data-dir %s", s.dir)
}

// stopAll ends the components: first the clients, then what they talk to. Nothing writes to the data dir after it: whoever
// waits for the locks may remove it.
func (s *supervisor) stopAll() {
	s.mu.Lock()
	s.stopping = true
	processes := s.processes
	s.mu.Unlock()
	if err := s.board.change(func(st *State) { st.Phase = Stopping }); err != nil {
		s.log.Error("state is not written", "error", err)
	}
	var clients sync.WaitGroup
	servers := map[string]*process{}
	for _, p := range processes {
		if p.name == component.Etcd || p.name == component.APIServer {
			servers[p.name] = p
			continue
		}
		clients.Go(p.stop)
	}
	clients.Wait()
	for _, name := range []string{component.APIServer, component.Etcd} {
		if p := servers[name]; p != nil {
			p.stop()
		}
	}
	s.watchers.Wait()
	s.log.Info("stopped")
}
