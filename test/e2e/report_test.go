package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	verdict "github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/history"
	"github.com/gangctl/gangctl/sandbox/demo"
)

// reportOn is the report on a job as data.
func reportOn(t *testing.T, stage *demo.Stage, name string, flags ...string) history.Report {
	t.Helper()
	stdout, _, code := gangctl(t, stage, append([]string{"report", name, "-o", "json"}, flags...)...)
	var r history.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v", code, err)
	}
	return r
}

// reports are those on a gang of three that runs and on one of two that waits for it.
func reports(t *testing.T, stage *demo.Stage) {
	runs := reportOn(t, stage, "holds")
	var cells int64
	for _, n := range runs.Nodes {
		for _, d := range n.Devices {
			for _, h := range d.Consumers {
				if h.Member != "" {
					cells += h.Amount
				}
			}
		}
	}
	if cells != 6 || len(runs.Lanes) != 3 || runs.Job.State != "Running" || runs.Now.Verdict != verdict.Running {
		t.Errorf("%d cells, %+v", cells, runs.Job)
	}
	for _, l := range runs.Lanes {
		if n := len(l.Phases); n == 0 || l.Phases[n-1].Kind != history.Running || l.Phases[n-1].To != nil || l.Node == "" {
			t.Errorf("%s: %+v", l.Member, l.Phases)
		}
	}
	waits := reportOn(t, stage, "waits")
	if waits.Now.Verdict != verdict.Waiting || waits.Lanes[0].Phases[len(waits.Lanes[0].Phases)-1].Kind != history.Pending {
		t.Errorf("%s, %+v", waits.Now.Verdict, waits.Lanes)
	}
	eventually(t, "what the scheduler said", func(context.Context) bool { return len(reportOn(t, stage, "waits").Messages) > 0 })

	saved, page := filepath.Join(t.TempDir(), "waits.yaml"), filepath.Join(t.TempDir(), "waits.html")
	gangctl(t, stage, "why-pending", "waits", "--save", saved)
	if _, stderr, code := gangctl(t, stage, "report", "waits", "--from", saved, "--file", page); code != 0 || !strings.Contains(stderr, "wrote the report on TFJob ") {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	text, err := os.ReadFile(page)
	must(t, err)
	if !strings.HasPrefix(string(text), "<!doctype html>") || !strings.Contains(string(text), "NODES_BUSY") || !strings.Contains(string(text), "gangctl submit tf waits") {
		t.Errorf("%.2000s", text)
	}
}

// kubernetesJob is a gang that needs no operator, in the commands that look at members.
func kubernetesJob(t *testing.T, stage *demo.Stage) {
	if _, _, code := gangctl(t, stage, "submit", "job", "crew", "--image", "train", "--workers", "2", "--gpus", "1", "--wait", "--", "python", "train.py"); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	stdout, _, code := gangctl(t, stage, "logs", "crew", "--tail", "1")
	if code != 0 || !strings.Contains(stdout, "[worker-0] ") || !strings.Contains(stdout, "[worker-1] ") {
		t.Errorf("exit code %d", code)
	}
	eventually(t, "events of the Job and its gang", func(context.Context) bool {
		stdout, _, _ := gangctl(t, stage, "events", "crew")
		return strings.Contains(stdout, "Job/crew ") && strings.Contains(stdout, "PodGroup/crew ")
	})
	if _, stderr, code := gangctl(t, stage, "attach", "crew", "--index", "1", "--", "date"); code != 1 || !strings.Contains(stderr, "simulates containers") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if r := reportOn(t, stage, "crew"); r.Job.Kind != "Job" || len(r.Lanes) != 2 || r.Lanes[1].Node == "" {
		t.Errorf("%+v, %+v", r.Job, r.Lanes)
	}
	must(t, stage.Delete(t.Context(), "crew"))
}
