package addon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/gangctl/gangctl/sandbox/component"
)

// Run runs a controller until ctx ends, by the command line that Args made. Its program follows no lifeline, as the components of a sandbox
// do: so it is the child of a component that does, and ends with that.
func Run(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errors.New("the controllers of a sandbox are started by `gangctl-sandbox up`")
	}
	home, program := args[0], args[1]
	// The kernel ties a process to the thread that started it, see component.Tied.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, program, args[2:]...)
	cmd.Env = append(os.Environ(), "TMPDIR="+home)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = component.Tied()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = component.Grace - time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was ended
	}
	if err == nil {
		err = errors.New("it ended by itself")
	}
	return fmt.Errorf("run %s: %w", program, err)
}
