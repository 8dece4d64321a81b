package session

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/gangctl/gangctl/pkg/cli/failure"

	"github.com/gangctl/gangctl/sandbox/supervise"
)

// supervisorLog is the supervisor's name among the logs.
const supervisorLog = "supervisor"

// stopTimeout is how long a supervisor may take to end its components.
const stopTimeout = 20 * time.Second

// Start starts a supervisor that outlives this process and waits until the
// sandbox is ready. If ctx ends first, nothing is left running.
func (s Session) Start(ctx context.Context, onStep func(string)) (*supervise.State, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	if err := os.RemoveAll(s.Dir.Path("state.json")); err != nil {
		return nil, fmt.Errorf("remove old state: %w", err)
	}
	log, err := os.OpenFile(s.Dir.Log(supervisorLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(exe, "supervise", "--data-dir", string(s.Dir))
	cmd.Dir = string(s.Dir)
	cmd.Stderr = log
	// What ends it goes through a pipe: on a full disk no file could be written.
	report, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	cmd.SysProcAttr = detached()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	var end Report
	dead := make(chan struct{})
	go func() {
		defer close(dead)
		if json.NewDecoder(report).Decode(&end) == nil {
			_, _ = io.Copy(io.Discard, report)
		}
		_ = cmd.Wait()
	}()
	state, err := s.WaitReady(ctx, dead, onStep)
	if err != nil && ctx.Err() != nil {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-dead:
		case <-time.After(stopTimeout):
			_ = cmd.Process.Kill()
			<-dead
		}
		return nil, ctx.Err()
	}
	if err != nil {
		select {
		case <-dead:
			if end.Error != "" {
				return nil, failure.Errorf("%s", end.Error).WithHint("%s", end.Hint)
			}
		default:
		}
	}
	return state, err
}

// Report is the error that a supervisor that ends before it is ready writes to its
// standard output, as JSON.
type Report struct{ Error, Hint string }
