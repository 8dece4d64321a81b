package whypending

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
)

// watched is a `why-pending llama --watch` that goes on while the test changes the cluster and moves the clock.
type watched struct {
	*cluster
	t           *testing.T
	out, errOut *kubetest.Screen
	ended       chan *failure.Error
	interrupt   context.CancelFunc
	looks       int
}

func startWatch(t *testing.T, c *clustertest.Cluster, args ...string) *watched {
	t.Helper()
	w := &watched{cluster: serve(t, c), t: t, out: &kubetest.Screen{}, errOut: &kubetest.Screen{}, ended: make(chan *failure.Error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	w.interrupt = cancel
	go func() { w.ended <- w.queryTo(ctx, w.out, w.errOut, append([]string{"llama", "--watch"}, args...)...) }()
	w.waitForLook()
	return w
}

// waitForLook waits until the cluster has been looked at once more. A look begins with a request for the version; after it the
// command waits for the ticker.
func (w *watched) waitForLook() {
	w.t.Helper()
	w.looks++
	w.eventually("a look at the cluster", func() bool {
		n := 0
		for _, r := range w.Requests() {
			if strings.HasPrefix(r, "GET /version") {
				n++
			}
		}
		return n >= w.looks && w.clock.HasWaiters()
	})
}

func (w *watched) eventually(what string, done func() bool) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		w.t.Fatalf("%s: %v\n%s%s", what, err, w.out, w.errOut)
	}
}

// tick lets the command look again.
func (w *watched) tick() {
	w.t.Helper()
	w.clock.Step(5 * time.Second)
	w.waitForLook()
}

// end is how the command ended.
func (w *watched) end() *failure.Error {
	w.t.Helper()
	select {
	case failed := <-w.ended:
		return failed
	case <-time.After(10 * time.Second):
		w.t.Fatalf("it does not end\n%s%s", w.out, w.errOut)
		return nil
	}
}

func changed(change func(*clustertest.Cluster)) *snapshot.Snapshot {
	c := clustertest.New().Nodes(2, 8)
	change(c)
	return c.Done()
}

// Only news is printed, and the end of the wait ends the watch.
func TestWatch(t *testing.T) {
	w := startWatch(t, busy(), "-q")
	w.eventually("the first answer", func() bool { return strings.HasPrefix(w.out.String(), "WAITING  0 of 16 GPUs free") })
	first := w.out.String()
	w.tick()
	w.tick() // the same cluster, some seconds later: no news
	w.Set(changed(func(c *clustertest.Cluster) {
		c.Runs("a", 8, "n1").Add(clustertest.Gang{Name: "llama", Workers: 2, GPUs: 8})
	}))
	w.tick()
	w.eventually("the second answer", func() bool { return strings.Contains(w.out.String(), "\nWAITING  8 of 16 GPUs free") })
	if got := strings.Count(w.out.String(), "\n"); got != 2 || !strings.HasPrefix(w.out.String(), first) {
		t.Errorf("%d lines, want 2: what did not change was printed again\n%s", got, w.out)
	}
	w.Set(changed(func(c *clustertest.Cluster) {
		c.Add(clustertest.Gang{Name: "llama", Workers: 2, GPUs: 8, Nodes: []string{"n1", "n2"}})
	}))
	w.clock.Step(5 * time.Second)
	if failed := w.end(); failed != nil || !strings.HasSuffix(w.out.String(), "RUNNING  llama: 2/2 members run\n") || w.errOut.String() != "" {
		t.Errorf("got %v\n%s%s", failed, w.out, w.errOut)
	}
}

// Whole answers are a line apart.
func TestWatchShowsWholeAnswers(t *testing.T) {
	w := startWatch(t, busy())
	w.eventually("the first answer", func() bool { return strings.Contains(w.out.String(), "\nConfidence ") })
	w.Set(changed(func(c *clustertest.Cluster) {
		c.Add(clustertest.Gang{Name: "llama", Workers: 2, GPUs: 8, Nodes: []string{"n1", "n2"}})
	}))
	w.clock.Step(5 * time.Second)
	if failed := w.end(); failed != nil || !strings.Contains(w.out.String(), "\n\nRUNNING  llama") {
		t.Errorf("got %v\n%s", failed, w.out)
	}
}

// Trouble in between is reported once, and does not end the watch.
func TestWatchSurvivesTrouble(t *testing.T) {
	w := startWatch(t, busy(), "-q")
	w.eventually("the first answer", func() bool { return w.out.String() != "" })
	first := w.out.String()
	w.Fail("/api/v1/nodes", kubetest.Status(500, metav1.StatusReasonInternalError, "etcd is gone", nil))
	w.tick()
	const note = "note: list Nodes in all namespaces: etcd is gone; trying again every 5s\n"
	w.eventually("the note", func() bool { return w.errOut.String() == note })
	w.tick()
	w.Fail("/api/v1/nodes", nil)
	w.tick()
	w.eventually("the good news", func() bool { return w.errOut.String() == note+"note: the API server answers again\n" })
	if w.out.String() != first {
		t.Errorf("what did not change was printed again:\n%s", w.out)
	}
	w.interrupt()
	if failed := w.end(); failed == nil || failed.Code != failure.CodeInterrupted || failed.Message != "interrupted; llama goes on waiting" {
		t.Errorf("got %+v", failed)
	}
}

func TestWatchEnds(t *testing.T) {
	t.Run("by Ctrl-C", func(t *testing.T) {
		w := startWatch(t, busy(), "-q")
		w.eventually("the first answer", func() bool { return w.out.String() != "" })
		w.interrupt()
		if failed := w.end(); failed == nil || failed.Code != 130 {
			t.Errorf("got %+v", failed)
		}
	})
	t.Run("when the job is gone", func(t *testing.T) {
		w := startWatch(t, busy(), "-q")
		w.eventually("the first answer", func() bool { return w.out.String() != "" })
		w.Set(changed(func(*clustertest.Cluster) {}))
		w.clock.Step(5 * time.Second)
		if failed := w.end(); failed == nil || failed.Code != 1 || failed.Message != "llama is gone: it was deleted while it was watched" {
			t.Errorf("got %+v", failed)
		}
	})
	t.Run("with the first error", func(t *testing.T) {
		l := serve(t, busy())
		l.Fail("/api/v1/nodes", kubetest.Status(500, metav1.StatusReasonInternalError, "etcd is gone", nil))
		if _, stderr, failed := l.query(t.Context(), "llama", "-w"); failed == nil || failed.Code != 1 || !strings.Contains(failed.Message, "etcd is gone") || stderr != "" {
			t.Errorf("got %+v, %q", failed, stderr)
		}
	})
	t.Run("when the job has failed", func(t *testing.T) {
		c := clustertest.New().Nodes(2, 8)
		g := clustertest.Gang{Name: "llama", Workers: 2, GPUs: 8}
		g.Job = func(job map[string]any) {
			job["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True", "reason": "TFJobFailed", "message": "worker-1 failed", "lastTransitionTime": "2026-11-21T13:00:00Z"}}}
		}
		out, _, failed := serve(t, c.Add(g)).query(t.Context(), "llama", "-w")
		if failed == nil || failed.Code != 9 || failed.Message != "" || !strings.HasPrefix(out, "FAILED") {
			t.Errorf("got %+v\n%s", failed, out)
		}
	})
}

func TestAgesAreNoNews(t *testing.T) {
	for text, want := range map[string]string{
		"last sign of life 3m20s ago, of 8 GPUs": "last sign of life … ago, of 8 GPUs",
		"waits for 12m: 768Gi, n1, gpu4s":        "waits for …: 768Gi, n1, gpu4s",
		"for 5m, 500m cpu is free":               "for …, 500m cpu is free",
	} {
		if got := withoutAges(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
