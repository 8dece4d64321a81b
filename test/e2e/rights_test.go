package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/sandbox/demo"
)

// TestRights queries why a gang waits for GPUs, as users who may not see everything. The rights that the answer requests are given to
// them, to the letter, and must be enough.
func TestRights(t *testing.T) {
	t.Parallel()
	stage := newStage(t, gangScheduler("scheduler-plugins"))
	must(t, stage.AddNodes(t.Context(), 2, 2))
	pendingJob(t, stage)
	full := verdictOf(t, func(args ...string) (string, string, int) { return gangctl(t, stage, args...) })
	if full.Verdict != "BLOCKED" || full.Rights != nil {
		t.Fatalf("an administrator is told %+v", full)
	}
	t.Run("one namespace only", func(t *testing.T) { readsOneNamespace(t, stage, full) })
	t.Run("no rights", func(t *testing.T) { readsNothing(t, stage, full) })
	t.Run("everything but creating", func(t *testing.T) { readsEverything(t, stage, full) })
}

// rightsReport is what an answer reports of rights.
type rightsReport struct {
	Verdict string
	Exit    int
	Primary struct{ Code string }
	Stages  []struct{ Name, State string }
	Rights  *struct {
		User    string
		Grant   string
		Missing []struct {
			Resource, Lost string
			Decisive       bool
		}
	}
}

func verdictOf(t *testing.T, types func(...string) (string, string, int)) rightsReport {
	t.Helper()
	out, stderr, code := types("why-pending", "tf-smoke-gpu", "-o", "json")
	var a rightsReport
	if err := json.Unmarshal([]byte(out), &a); err != nil || a.Exit != code {
		t.Fatalf("%v, exit code %d\n%s%s", err, code, out, stderr)
	}
	return a
}

func readsOneNamespace(t *testing.T, stage *demo.Stage, full rightsReport) {
	a := newAccount(t, stage, "reader")
	a.reads(t, stage, false)
	var text, stderr string
	var code int
	eventually(t, "the scheduler's event is there", func(context.Context) bool { // which is written after the condition
		text, stderr, code = a.types(t, "why-pending", "tf-smoke-gpu")
		return strings.Contains(text, "scheduler ok gang-scheduler, seen ")
	})
	if code != 8 || stderr != "" || !strings.HasPrefix(text, "UNKNOWN  ") {
		t.Fatalf("exit code %d, want 8: whether there is room cannot be determined\n%s", code, stderr)
	}
	for _, want := range []string{
		"nodes: you may not list; placement is unknown\n", "pods in all namespaces: you may not list; what holds the nodes is unknown\n", // what is lost
		"pods ok 5/5", "podgroup ok 5/5", "Scheduler gang-scheduler reported", // what is known all the same
		"An administrator can grant " + a.user() + " what is missing:\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the answer lacks %q", want)
		}
	}
	if strings.Contains(text, "storageclasses") {
		t.Error("the answer is full of rights that it does not depend on")
	}
	if verbose, _, _ := a.types(t, "why-pending", "tf-smoke-gpu", "-v"); !strings.Contains(verbose, "storageclasses") {
		t.Error("-v does not tell the other rights that are missing")
	}
	before := verdictOf(t, func(args ...string) (string, string, int) { return a.types(t, args...) })
	if before.Rights == nil || before.Rights.User != a.user() || before.Rights.Grant != pasted(t, text) {
		t.Errorf("JSON and text say different things: %+v", before.Rights)
	}
	grant(t, stage, pasted(t, text))
	eventually(t, "with the grant the answer is that of an administrator", func(context.Context) bool {
		after := verdictOf(t, func(args ...string) (string, string, int) { return a.types(t, args...) })
		return after.Verdict == full.Verdict && after.Primary.Code == full.Primary.Code && after.Exit == full.Exit && after.Rights != nil && after.Rights.Grant == ""
	})
}

func readsNothing(t *testing.T, stage *demo.Stage, full rightsReport) {
	a := newAccount(t, stage, "nobody")
	text, stderr, code := a.types(t, "why-pending", "tf-smoke-gpu")
	first := `error: list TFJobs in namespace default: tfjobs.kubeflow.org is forbidden: User "` + a.user() + `" cannot list resource "tfjobs" in API group "kubeflow.org" in the namespace "default"` + "\n"
	if code != 8 || text != "" || !strings.HasPrefix(stderr, first) || !strings.Contains(stderr, "\nhint: ask an administrator to apply this: kubectl --kubeconfig "+a.kubeconfig+" apply") {
		t.Fatalf("exit code %d, want 8 and an error that names the first missing right", code)
	}
	if list, stderr, code := a.types(t, "why-pending"); code != 8 || list != "" || !strings.HasPrefix(stderr, first) {
		t.Error("without a name, jobs that cannot be seen pass for none")
	}
	if out, _, code := a.types(t, "why-pending", "tf-smoke-gpu", "-o", "json"); code != 8 || !strings.Contains(out, `"code": "NO_PERMISSION"`) {
		t.Error("programs get no answer")
	}
	// The rights that are named at first are enough to get the rest named, and those for the whole answer.
	grant(t, stage, pasted(t, stderr))
	eventually(t, "the job is seen", func(context.Context) bool {
		text, _, code = a.types(t, "why-pending", "tf-smoke-gpu")
		return code == 8 && strings.HasPrefix(text, "UNKNOWN  tf-smoke-gpu: whether there is room cannot be determined")
	})
	grant(t, stage, pasted(t, text))
	eventually(t, "the answer is that of an administrator", func(context.Context) bool {
		after := verdictOf(t, func(args ...string) (string, string, int) { return a.types(t, args...) })
		return after.Verdict == full.Verdict && after.Primary.Code == full.Primary.Code
	})
}

// readsEverything: whoever may not create pods cannot try whether they would be accepted. That changes nothing where all pods
// are there, and is reported where they are not.
func readsEverything(t *testing.T, stage *demo.Stage, full rightsReport) {
	a := newAccount(t, stage, "viewer")
	a.reads(t, stage, true)
	eventually(t, "the rights are known", func(context.Context) bool {
		got := verdictOf(t, func(args ...string) (string, string, int) { return a.types(t, args...) })
		return got.Verdict == full.Verdict && got.Primary.Code == full.Primary.Code && got.Rights == nil
	})
	// A job that is only thought of has no pods yet.
	args := []string{"submit", "tf", "thought", "--image", "x", "--workers", "1", "--gpus", "2", "--dry-run=fit"}
	text, _, code := a.types(t, args...)
	if code != 8 || !strings.HasPrefix(text, "UNKNOWN  thought cannot be submitted: you may not create ") {
		t.Errorf("exit code %d: %s", code, text)
	}
	for _, want := range []string{
		"tfjobs.kubeflow.org in namespace default: you may not create; the job cannot be submitted\n",
		"pods in namespace default: you may not create; whether the API server would accept the pods was not tried\n",
		"pods unknown 0/1", "placement ok 1/1", // it fits, as far as can be determined
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the answer lacks %q", want)
		}
	}
	grant(t, stage, pasted(t, text))
	eventually(t, "with the grant it is told that it would start", func(context.Context) bool {
		text, _, code := a.types(t, args...)
		return code == 0 && strings.HasPrefix(text, "FITS_NOW  thought")
	})
	if jobs, _, _ := gangctl(t, stage, "list", "-o", "name"); strings.Contains(jobs, "thought") {
		t.Error("a dry run has created a job")
	}
}
