// Package e2e runs the programs as users do, on a sandbox: a real API server,
// the real Training Operator, real schedulers, simulated nodes.
package e2e

import (
	"context"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gangctl/gangctl/internal/sandboxtest"
	"github.com/gangctl/gangctl/sandbox/demo"
)

// stepTimeout bounds each wait for the cluster. It is long, because a machine
// that runs tests may be busy with others; nothing waits for it to pass.
const stepTimeout = 90 * time.Second

// programs are the paths of gangctl and gangctl-sandbox.
var programs struct{ gangctl, sandbox string }

// sandboxes are what tests take turns with.
var sandboxes sandboxtest.Pool

func TestMain(m *testing.M) {
	os.Exit(sandboxtest.Main(m, func(gangctl, sandbox string) { programs.gangctl, programs.sandbox = gangctl, sandbox }, sandboxes.Close))
}

// long reports whether tests may take minutes, for all dialects and at full size,
// as with make e2e-long. Otherwise they do the same with less.
func long() bool { return os.Getenv("GANGCTL_LONG") != "" }

// gangScheduler returns the demo's gang scheduler for one dialect.
func gangScheduler(dialect string) demo.Scheduler {
	return demo.Scheduler{Title: "gang scheduler, " + dialect, Name: "gang", Submit: []string{"--dialect", dialect}}
}

func defaultScheduler() demo.Scheduler { return demo.Schedulers()[0] }

// newStage returns a sandbox without nodes that has one scheduler, and is the test's until its end.
func newStage(t *testing.T, scheduler demo.Scheduler) *demo.Stage {
	t.Helper()
	return newStageOn(t, sandboxes.Take(t, "--run-for=0", "--scheduler="+scheduler.Name), scheduler)
}

// newStageOn returns a stage on a sandbox without nodes, whose pods run until they are ended.
func newStageOn(t *testing.T, on *sandboxtest.Cluster, scheduler demo.Scheduler) *demo.Stage {
	t.Helper()
	stage, err := demo.Connect(demo.StageConfig{
		Gangctl: programs.gangctl, Sandbox: programs.sandbox, DataDir: on.DataDir,
		Log: logger{t}, Timeout: stepTimeout, Scheduler: scheduler,
	})
	must(t, err)
	return stage
}

// logger writes to the test's log, which is shown when the test fails.
type logger struct{ t *testing.T }

func (l logger) Write(p []byte) (int, error) {
	l.t.Logf("%s", p)
	return len(p), nil
}

// rests waits until what is seen has not changed for a while.
func rests(t *testing.T, during time.Duration, see func() string) {
	t.Helper()
	last, since := see(), time.Now()
	eventually(t, "nothing changes for "+during.String(), func(context.Context) bool {
		if seen := see(); seen != last {
			last, since = seen, time.Now()
		}
		return time.Since(since) > during
	})
}

// eventually polls until done, and fails the test if that takes too long.
func eventually(t *testing.T, what string, done func(context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, stepTimeout, true, func(ctx context.Context) (bool, error) {
		return done(ctx), nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
