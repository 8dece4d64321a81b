package supervise

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/gangctl/gangctl/sandbox/component"
	"github.com/gangctl/gangctl/sandbox/datadir"
)

// process is a component as a child of the supervisor.
type process struct {
	name string
	cmd  *exec.Cmd
	// lifeline is the child's standard input: it ends when this closes.
	lifeline io.Closer
	// done closes when the child is gone; exit then is how it ended.
	done chan struct{}
	exit string
}

// start runs this program as a component. The child writes to its log itself,
// and holds the component lock as long as it lives.
func start(dir datadir.Dir, exe string, lock *datadir.Lock, s spec) (*process, error) {
	log, err := openLog(dir.Log(s.name))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	args := append([]string{"component", s.name, "--data-dir", string(dir)}, s.args...)
	cmd := exec.Command(exe, args...)
	cmd.Dir = string(dir)
	cmd.Env = append(slices.Clone(s.env), os.Environ()...) // of two the last counts: the user's setting for memory
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lock.File()}
	cmd.SysProcAttr = ownGroup()
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.name, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.name, err)
	}
	p := &process{name: s.name, cmd: cmd, lifeline: lifeline, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		p.exit = cmd.ProcessState.String()
		close(p.done)
	}()
	return p, nil
}

// stop ends the child and returns when it is gone.
func (p *process) stop() {
	_ = p.lifeline.Close()
	select {
	case <-p.done:
		return
	case <-time.After(component.Grace + time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// openLog starts a log afresh and keeps the one of the previous run.
func openLog(path string) (*os.File, error) {
	if err := os.Rename(path, path+".1"); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("rotate log: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return f, nil
}
