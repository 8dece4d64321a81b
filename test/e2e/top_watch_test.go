package e2e

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/gangctl/gangctl/internal/sandboxtest"
	"github.com/gangctl/gangctl/sandbox/demo"
)

// topFollows checks that top -w, which lists once and watches, comes to show what the API server has, jobs that come and go included.
// The stage has two gangs, one of which holds six of the eight GPUs.
func topFollows(t *testing.T, stage *demo.Stage) {
	ctx := t.Context()
	type screen struct {
		out *sandboxtest.Output
		cmd *exec.Cmd
	}
	start := func(args ...string) screen {
		s := screen{out: &sandboxtest.Output{}}
		s.cmd = exec.CommandContext(ctx, programs.gangctl, append([]string{"--kubeconfig", stage.Kubeconfig(), "top"}, append(args, "-w", "--interval", "1s")...)...)
		s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
		must(t, s.cmd.Start())
		return s
	}
	// shows waits for a frame, the last one that is complete.
	shows := func(s screen, pattern string) {
		t.Helper()
		p := regexp.MustCompile(pattern)
		eventually(t, pattern, func(context.Context) bool {
			frames := strings.Split(s.out.String(), "\ngangctl top ")
			return len(frames) > 1 && p.MatchString(frames[len(frames)-2])
		})
	}
	nodes, jobs := start("node"), start("job")
	shows(nodes, `nvidia.com/gpu: 8 total, 6 used, 2 idle`)
	shows(jobs, `(?m)^holds +Running +3/3 +6 +6 `)
	must(t, stage.Submit(ctx, "brief", "--workers", "2", "--gpus", "1"))
	shows(jobs, `(?m)^brief +Running +2/2 +2 +2 `)
	shows(nodes, `nvidia.com/gpu: 8 total, 8 used, 0 idle\nno gang with GPUs starts now`)
	must(t, stage.Delete(ctx, "brief"))
	shows(nodes, `nvidia.com/gpu: 8 total, 6 used, 2 idle`)
	shows(jobs, `^job [^b]*JOB(?s:.*)2 jobs hold 6 GPUs`)
	for _, s := range []screen{nodes, jobs} {
		must(t, s.cmd.Process.Signal(syscall.SIGINT))
		_ = s.cmd.Wait()
		if code := s.cmd.ProcessState.ExitCode(); code != 130 || strings.Contains(s.out.String(), "note: ") {
			t.Errorf("exit code %d\n%s", code, s.out)
		}
	}
}
