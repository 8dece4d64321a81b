package e2e

import (
	"context"
	"encoding/json"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/gangctl/gangctl/internal/sandboxtest"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
	"github.com/gangctl/gangctl/sandbox/demo"
	"github.com/gangctl/gangctl/sandbox/members"
)

// The daily tool on a cluster with a gang that runs and one that waits: who holds what, what happened, and what is printed.
func TestDailyTool(t *testing.T) {
	t.Parallel()
	stage := newStage(t, gangScheduler("scheduler-plugins"))
	ctx := t.Context()
	must(t, stage.AddNodes(ctx, 2, 4))
	must(t, stage.Submit(ctx, "holds", "--workers", "3", "--gpus", "2"))
	must(t, stage.Submit(ctx, "waits", "--workers", "2", "--gpus", "2"))
	_, err := stage.WaitFor(ctx, func(s members.List) bool {
		return s.Job("holds").Count(members.Running) == 3 && s.Job("waits").Count(members.Pending) == 2
	})
	must(t, err)
	t.Run("top", func(t *testing.T) {
		stdout, _, code := gangctl(t, stage, "top", "node", "-o", "json")
		var nodes usage.Nodes
		must(t, json.Unmarshal([]byte(stdout), &nodes))
		if code != 0 || len(nodes.Totals) != 1 || nodes.Totals[0].Used != 6 || nodes.Totals[0].Total != 8 || nodes.Totals[0].Free != 2 {
			t.Errorf("got %+v", nodes.Totals)
		}
		stdout, _, _ = gangctl(t, stage, "top", "job")
		for _, line := range []string{`(?m)^holds +Running +3/3 +6 +6 +- +- *$`, `(?m)^waits +Pending +0/2 +4 +0 +- +\S+ +NODES_BUSY: `, `(?m)^1 of 2 jobs holds 6 GPUs; others in this namespace hold 0 GPUs$`} {
			if !regexp.MustCompile(line).MatchString(stdout) {
				t.Errorf("no %s in\n%s", line, stdout)
			}
		}
		if stdout, _, _ = gangctl(t, stage, "top", "queue"); !regexp.MustCompile(`(?m)^\(none\) .* 1 +1 +4$`).MatchString(stdout) {
			t.Errorf("got\n%s", stdout)
		}
	})
	t.Run("top -w", func(t *testing.T) { topFollows(t, stage) })
	t.Run("report", func(t *testing.T) { reports(t, stage) })
	t.Run("logs", func(t *testing.T) {
		stdout, _, code := gangctl(t, stage, "logs", "holds", "--tail", "1", "--role", "worker")
		if code != 0 || strings.Count(stdout, "[worker-") != 3 {
			t.Errorf("exit code %d", code)
		}
		for _, arg := range []string{"pod/holds-worker-1", "holds-worker-1"} {
			stdout, _, code := gangctl(t, stage, "logs", arg, "--tail", "1")
			if code != 0 || strings.Count(stdout, "\n") != 1 || !strings.HasPrefix(stdout, "[worker-1] ") {
				t.Errorf("%s: exit code %d: %s", arg, code, stdout)
			}
		}
		if _, stderr, code := gangctl(t, stage, "logs", "waits"); code != 1 || !strings.Contains(stderr, "error: no member of waits has started: WAITING  ") {
			t.Errorf("exit code %d, %s", code, stderr)
		}
	})
	t.Run("logs wait for members", func(t *testing.T) {
		out := &sandboxtest.Output{}
		cmd := exec.CommandContext(ctx, programs.gangctl, "--kubeconfig", stage.Kubeconfig(), "logs", "waits", "-f")
		cmd.Stdout, cmd.Stderr = out, out
		must(t, cmd.Start())
		eventually(t, "why it waits", func(context.Context) bool { return strings.Contains(out.String(), "waiting: WAITING  ") })
		must(t, stage.Delete(ctx, "holds"))
		eventually(t, "the first lines", func(context.Context) bool {
			return strings.Contains(out.String(), "[worker-0] simulated by") && strings.Contains(out.String(), "[worker-1] simulated by")
		})
		must(t, stage.Delete(ctx, "waits"))
		if err := cmd.Wait(); err != nil {
			t.Errorf("logs -f does not end with its job: %v\n%s", err, out)
		}
	})
	t.Run("events", func(t *testing.T) {
		must(t, stage.Submit(ctx, "short", "--workers", "2", "--gpus", "1"))
		_, err := stage.WaitFor(ctx, func(s members.List) bool { return s.Job("short").Count(members.Running) == 2 })
		must(t, err)
		eventually(t, "the events of the job and of its group", func(context.Context) bool {
			stdout, _, code := gangctl(t, stage, "events", "short")
			return code == 0 && strings.Contains(stdout, "TFJob/short") && strings.Contains(stdout, "PodGroup/short ")
		})
		stdout, _, code := gangctl(t, stage, "events", "pod/short-worker-0", "--no-headers")
		if code != 0 || strings.Contains(stdout, "TFJob/") || strings.Contains(stdout, "PodGroup/") || strings.Contains(stdout, "short-worker-1 ") {
			t.Errorf("exit code %d\n%s", code, stdout)
		}
		if _, stderr, code := gangctl(t, stage, "attach", "pod/short-worker-1", "--", "date"); code != 1 || !strings.Contains(stderr, "simulates containers") {
			t.Errorf("exit code %d, %s", code, stderr)
		}
	})
	t.Run("a Job of Kubernetes itself", func(t *testing.T) { kubernetesJob(t, stage) })
}

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
	shows(jobs, `^job [^b]*JOB(?s:.*)2 jobs holds? 6 GPUs`)
	for _, s := range []screen{nodes, jobs} {
		must(t, s.cmd.Process.Signal(syscall.SIGINT))
		_ = s.cmd.Wait()
		if code := s.cmd.ProcessState.ExitCode(); code != 130 || strings.Contains(s.out.String(), "note: ") {
			t.Errorf("exit code %d\n%s", code, s.out)
		}
	}
}
