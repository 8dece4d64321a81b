// Package session is a sandbox as seen from outside its supervisor: start it,
// query it, end it.
package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/gangctl/gangctl/pkg/cli/failure"

	"github.com/gangctl/gangctl/sandbox/datadir"
	"github.com/gangctl/gangctl/sandbox/supervise"
)

// pollEvery is how often a session looks at the supervisor's state.
const pollEvery = 30 * time.Millisecond

// Session is one data dir.
type Session struct{ Dir datadir.Dir }

// Running reports whether a supervisor has the data dir.
func (s Session) Running() (bool, error) { return s.Dir.Held(datadir.SupervisorLock) }

// State is the state that the running supervisor reports; nil if none runs or it has not
// reported yet.
func (s Session) State() (*supervise.State, error) {
	running, err := s.Running()
	if err != nil || !running {
		return nil, err
	}
	state, err := supervise.ReadState(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if pid, err := s.Dir.SupervisorPID(); err == nil && pid == state.PID {
		return state, nil
	}
	return nil, nil // of an earlier run
}

// WaitReady returns the state of a running supervisor once it is ready. It calls
// onStep with each thing that is waited for. dead closes if the supervisor ends;
// nil if that is not known.
func (s Session) WaitReady(ctx context.Context, dead <-chan struct{}, onStep func(string)) (*supervise.State, error) {
	step := ""
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		state, err := s.State()
		if err != nil {
			return nil, err
		}
		if state != nil {
			if state.Step != "" && state.Step != step {
				step = state.Step
				onStep(step)
			}
			switch state.Phase {
			case supervise.Ready:
				return state, nil
			case supervise.Degraded:
				return nil, failure.Errorf("%s of the sandbox in %s ended", strings.Join(state.Ended(), ", "), s.Dir).
					WithHint("start it again, objects are kept: gangctl-sandbox up --data-dir %s", s.Dir)
			case supervise.Starting, supervise.Stopping, supervise.Failed:
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-dead:
			return nil, s.lastLines()
		case <-tick.C:
		}
		if dead == nil {
			if running, err := s.Running(); err != nil || !running {
				return nil, errors.Join(err, s.lastLines())
			}
		}
	}
}

// lastLines is why the supervisor ended before it was ready.
func (s Session) lastLines() error {
	if state, err := supervise.ReadState(s.Dir); err == nil && state.Phase == supervise.Failed {
		return failure.Errorf("%s", state.Error).WithHint("%s", state.Hint)
	}
	log := s.Dir.Log(supervisorLog)
	return fmt.Errorf("the supervisor ended before the sandbox was ready; its last lines in %s:\n%s", log, supervise.LastLines(log, 8))
}
