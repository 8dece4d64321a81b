package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/internal/prerequisite"
	"github.com/gangctl/gangctl/sandbox/demo"
	"github.com/gangctl/gangctl/sandbox/members"
)

// TestWhyPending queries a job that needs 8 GPUs and finds 4, and does what
// the answer advises, to the letter: each piece of advice that is a command must
// make the gang start.
func TestWhyPending(t *testing.T) {
	t.Parallel()
	prerequisite.Program(t, "kubectl") // advice is given as kubectl commands
	stage := newStage(t, gangScheduler("scheduler-plugins"))
	must(t, stage.AddNodes(t.Context(), 2, 2))
	for _, kind := range commandsOffered(t, stage) {
		t.Run(kind, func(t *testing.T) {
			pendingJob(t, stage)
			answer := why(t, stage)
			for _, action := range answer.Unblock {
				if action.Kind != kind {
					continue
				}
				t.Logf("$ %s", action.Command)
				shell := exec.CommandContext(t.Context(), "bash", "-e", "-c", action.Command)
				shell.Env = append(os.Environ(), "KUBECONFIG="+stage.Kubeconfig())
				if out, err := shell.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				if _, err := stage.WaitFor(t.Context(), func(s members.List) bool { return len(s) > 0 && s.Count(members.Running) == len(s) }); err != nil {
					t.Errorf("the gang does not start: %v", err)
				}
			}
			must(t, stage.Delete(t.Context(), "tf-smoke-gpu"))
		})
	}
}

// commandsOffered returns the kinds of advice that come with a command.
func commandsOffered(t *testing.T, stage *demo.Stage) (kinds []string) {
	pendingJob(t, stage)
	text, _, code := gangctl(t, stage, "why-pending", "tf-smoke-gpu")
	if code != 6 {
		t.Errorf("exit code %d, want 6: it can never run here", code)
	}
	for _, want := range []string{"BLOCKED", "4 workers with 2 GPUs each, 8 in all", "4 GPUs on 2 nodes", "add 2 nodes like node-1"} {
		if !strings.Contains(text, want) {
			t.Errorf("the answer lacks %q", want)
		}
	}
	for _, action := range why(t, stage).Unblock {
		if !action.Verified {
			t.Errorf("advice %s was not verified", action.Kind)
		}
		if action.Command != "" {
			kinds = append(kinds, action.Kind)
		}
	}
	if len(kinds) == 0 {
		t.Error("no advice comes with a command")
	}
	must(t, stage.Delete(t.Context(), "tf-smoke-gpu"))
	return kinds
}

func pendingJob(t *testing.T, stage *demo.Stage) {
	t.Helper()
	must(t, stage.Submit(t.Context(), "tf-smoke-gpu", "--workers", "4", "--gpus", "2", "--ps", "1", "--ps-cpu", "1"))
	_, err := stage.Decided(t.Context(), 5)
	must(t, err)
}

// answer is what the test reads of the JSON.
type answer struct {
	Verdict string
	Unblock []struct {
		Kind, Command string
		Verified      bool
	}
}

func why(t *testing.T, stage *demo.Stage) answer {
	t.Helper()
	out, _, _ := gangctl(t, stage, "why-pending", "tf-smoke-gpu", "-o", "json")
	var a answer
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return a
}

// TestTheSchedulerAnswers checks that the scheduler publishes why a gang waits, and
// to take it back when it starts. What it reports is what the cluster reports.
func TestTheSchedulerAnswers(t *testing.T) {
	t.Parallel()
	stage := newStage(t, gangScheduler("scheduler-plugins"))
	must(t, stage.AddNodes(t.Context(), 2, 2))
	must(t, stage.Submit(t.Context(), "llama", "--workers", "4", "--gpus", "2"))
	_, err := stage.WaitFor(t.Context(), func(s members.List) bool { return s.Job("llama").Count(members.Pending) == 4 })
	must(t, err)
	var out string
	eventually(t, "the scheduler has published an answer", func(context.Context) bool {
		var code int
		out, _, code = gangctl(t, stage, "why-pending", "llama", "-n", demo.Namespace, "--source=scheduler")
		return code != 1
	})
	own, _, _ := gangctl(t, stage, "why-pending", "llama", "-n", demo.Namespace, "--source=cluster")
	first := func(text string) string { line, _, _ := strings.Cut(text, "\n"); return line }
	eventually(t, "the answer is that of all members", func(context.Context) bool {
		out, _, _ = gangctl(t, stage, "why-pending", "llama", "-n", demo.Namespace, "--source=scheduler")
		return first(out) == first(own)
	})
	if !strings.Contains(out, "8 in all") || !strings.Contains(out, "gang-scheduler found this out") {
		t.Errorf("the scheduler says\n%s\nthe cluster says\n%s", out, own)
	}
	must(t, stage.AddNodes(t.Context(), 2, 2))
	eventually(t, "the answer is taken back", func(context.Context) bool {
		_, stderr, code := gangctl(t, stage, "why-pending", "llama", "-n", demo.Namespace, "--source=scheduler")
		return code == 1 && strings.Contains(stderr, "no published answer")
	})
	nothingForbidden(t, stage)
}
