package component

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// RunProgram runs a program of another project until ctx ends, with further variables. It follows no lifeline, as the components of a sandbox
// do: so it is the child of a component that does, and ends with that.
func RunProgram(ctx context.Context, program string, args []string, env ...string) error {
	// The kernel ties a process to the thread that started it, see Tied.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = Tied()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = Grace - time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was ended
	}
	if err == nil {
		err = errors.New("it ended by itself")
	}
	return fmt.Errorf("run %s: %w", program, err)
}
