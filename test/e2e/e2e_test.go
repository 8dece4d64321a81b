// Package e2e runs the programs as users do, on a sandbox: a real API server,
// the real Training Operator, real schedulers, simulated nodes.
package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gangctl/gangctl/internal/sandboxtest"
	"github.com/gangctl/gangctl/sandbox/demo"
)

// stepTimeout bounds each wait for the cluster. It is long, because a machine
// that runs tests may be busy with others; nothing waits for it to pass.
const stepTimeout = 90 * time.Second

// programs are the paths of gangctl and gangctl-sandbox.
var programs struct{ gangctl, sandbox string }

func TestMain(m *testing.M) {
	os.Exit(sandboxtest.Main(m, func(gangctl, sandbox string) { programs.gangctl, programs.sandbox = gangctl, sandbox }))
}

// long tells whether tests may take minutes, for all dialects and at full size,
// as with make e2e-long. Otherwise they do the same with less.
func long() bool { return os.Getenv("GANGCTL_LONG") != "" }

// gangScheduler returns the demo's gang scheduler for one dialect.
func gangScheduler(dialect string) demo.Scheduler {
	return demo.Scheduler{Title: "gang scheduler, " + dialect, Name: "gang", Submit: []string{"--dialect", dialect}}
}

func defaultScheduler() demo.Scheduler { return demo.Schedulers()[0] }

// newStage brings up a sandbox without nodes, and takes it down with the test.
func newStage(t *testing.T, scheduler demo.Scheduler) *demo.Stage {
	t.Helper()
	stage := &demo.Stage{
		Gangctl: programs.gangctl, Sandbox: programs.sandbox,
		DataDir: filepath.Join(t.TempDir(), "sandbox"), Log: logger{t}, Timeout: stepTimeout, Scheduler: scheduler,
	}
	t.Cleanup(func() {
		if t.Failed() {
			(&sandboxtest.Cluster{DataDir: stage.DataDir}).DumpLogs(t)
		}
		if err := stage.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := stage.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	return stage
}

// logger writes to the test's log, which is shown when the test fails.
type logger struct{ t *testing.T }

func (l logger) Write(p []byte) (int, error) {
	l.t.Logf("%s", p)
	return len(p), nil
}
