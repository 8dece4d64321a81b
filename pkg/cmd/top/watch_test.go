package top

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	clusterview "github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
)

// watched is a `top -w` that goes on.
type watched struct {
	t       *testing.T
	cluster *kubetest.Cluster
	clock   *clocktesting.FakeClock
	out     *kubetest.Screen
	keys    io.Writer
	stop    context.CancelFunc
	ended   chan *failure.Error
}

func startWatch(t *testing.T, width int, args ...string) *watched {
	t.Helper()
	w := &watched{t: t, cluster: kubetest.Serve(t, shop().Done()), clock: clocktesting.NewFakeClock(clustertest.Now), out: &kubetest.Screen{}, ended: make(chan *failure.Error, 1)}
	streams, _, _, _ := iostreams.Test(w.clock)
	streams.SetOut(w.out)
	keys, typed := io.Pipe()
	streams.In, w.keys = keys, typed
	if width > 0 {
		streams.SetTerminal(width)
	}
	cmd := NewCommand(&cmdutil.Factory{IO: streams, Client: w.cluster.Client, Namespace: func() (string, error) { return "team", nil }}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	w.stop = cancel
	go func() { w.ended <- failure.From(commandtest.Execute(ctx, cmd, args...)) }()
	return w
}

// until lets time pass until something is done.
func (w *watched) until(what string, done func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("not in time: %s\n%.4000s", what, w.out)
		}
		if w.clock.HasWaiters() {
			w.clock.Step(500 * time.Millisecond)
		}
	}
}

// shows waits until the screen shows something.
func (w *watched) shows(what string) {
	w.t.Helper()
	w.until(what, func() bool { return strings.Contains(w.out.String(), what) })
}

// matches waits until what is shown from now on matches a pattern.
func (w *watched) matches(pattern string) {
	w.t.Helper()
	p, from := regexp.MustCompile(pattern), len(w.out.String())
	w.until(pattern, func() bool { return p.MatchString(w.out.String()[from:]) })
}

// requested counts the requests so far, by verb and path; watches do not count.
func (w *watched) requested() map[string]int {
	requested := map[string]int{}
	for _, r := range w.cluster.Requests() {
		if !strings.Contains(r, "watch=true") {
			path, _, _ := strings.Cut(r, "?")
			requested[path]++
		}
	}
	return requested
}

func (w *watched) end() *failure.Error {
	w.t.Helper()
	select {
	case failed := <-w.ended:
		return failed
	case <-time.After(20 * time.Second):
		w.t.Fatalf("it does not end\n%.4000s", w.out)
		return nil
	}
}

const restored = "\x1b[?7h\x1b[?25h\x1b[?1049l"

// The screen is redrawn in place with what has changed, and given back when q is pressed.
func TestWatch(t *testing.T) {
	w := startWatch(t, 100, "node", "-w")
	w.shows("gpu-1")
	c := shop()
	c.S.Nodes[0].Spec.Unschedulable = true // in the order in which they were added: gpu-1
	w.cluster.Set(c.Done())
	w.shows("Ready,Cordoned   nvidia 8/8")
	if _, err := w.keys.Write([]byte("q")); err != nil {
		t.Fatal(err)
	}
	if failed := w.end(); failed != nil {
		t.Errorf("got %+v", failed)
	}
	out := w.out.String()
	if !strings.HasPrefix(out, "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H") || !strings.HasSuffix(out, restored) {
		t.Errorf("the screen is not given back: %q … %q", out[:40], out[len(out)-40:])
	}
	if strings.Contains(strings.ReplaceAll(out, "\r\n", ""), "\n") {
		t.Error("a line does not return to its beginning")
	}
}

// However it ends, the screen is given back.
func TestWatchRestores(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(*watched)
		code failure.Code
	}{
		"q":      {func(w *watched) { _, _ = w.keys.Write([]byte("xq")) }, 0},
		"Ctrl-C": {func(w *watched) { _, _ = w.keys.Write([]byte{3}) }, failure.CodeInterrupted},
		"signal": {func(w *watched) { w.stop() }, failure.CodeInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			w := startWatch(t, 80, "job", "-w")
			w.shows("mistral")
			tt.do(w)
			failed := w.end()
			if tt.code == 0 && failed != nil || tt.code != 0 && (failed == nil || failed.Code != tt.code) || !strings.HasSuffix(w.out.String(), restored) {
				t.Errorf("got %+v, %q", failed, w.out.String()[len(w.out.String())-30:])
			}
		})
	}
}

// A watch that is lost is shown in the frame, with the age of what is shown; when it is back, what happened meanwhile is shown.
func TestWatchTrouble(t *testing.T) {
	w := startWatch(t, 200, "node", "-w")
	w.shows("live, q quits)")
	w.cluster.Fail("/api/v1/nodes", kubetest.Status(500, metav1.StatusReasonInternalError, "etcd is gone", nil))
	w.matches(`\((\d+[smhd])+ ago, q quits\)\x1b\[K\r\nnote: nothing heard of nodes for (\d+[smhd])+: (list|watch) Nodes in all namespaces: etcd is gone; trying again`)
	c := shop()
	c.S.Nodes[0].Spec.Unschedulable = true
	w.cluster.Set(c.Done())
	w.cluster.Fail("/api/v1/nodes", nil)
	w.matches(`live, q quits\)\x1b\[K\r\n\x1b\[K\r\nNODE[^!]*gpu-1 +Ready,Cordoned`)
	w.stop()
	w.end()
}

// That a list is refused later is shown too, and what was seen before is kept.
func TestWatchRefusedLater(t *testing.T) {
	w := startWatch(t, 200, "node", "-w")
	w.shows("live, q quits)")
	w.cluster.Deny("bob", "/api/v1/nodes")
	w.matches(` ago, q quits\)\x1b\[K\r\nnote: list nodes in all namespaces: x is forbidden: User "bob" cannot list resource "nodes"; trying again\x1b\[K\r\n\x1b\[K\r\nNODE`)
	w.stop()
	w.end()
}

// What may be listed and not watched is noted, and shown all the same.
func TestWatchMayNotWatch(t *testing.T) {
	w := startWatch(t, 120, "node", "-w")
	w.shows("live, q quits)")
	w.cluster.Unwatch("/api/v1/nodes")
	w.shows("note: you may not watch nodes: listed again every few seconds")
	w.stop()
	w.end()
}

// However many frames there are, each kind is listed once, and metrics are requested every quarter of a minute at most.
func TestWatchSendsFewRequests(t *testing.T) {
	w := startWatch(t, 200, "node", "-w", "--interval", "1s")
	w.cluster.HandleFunc("GET "+metricsPath, func(rw http.ResponseWriter, _ *http.Request) {
		kubetest.Write(rw, 200, json.RawMessage(`{"items":[{"metadata":{"name":"gpu-1"},"usage":{"cpu":"12500m","memory":"64Gi"}}]}`))
	})
	w.shows("CPU-NOW")
	// On this clock a slow machine takes long for a view, and rests for long: there are views until the second request is made.
	w.until("a second request for metrics, and three minutes", func() bool {
		return w.requested()["GET "+metricsPath] >= 2 && w.clock.Since(clustertest.Now) >= 3*time.Minute
	})
	w.stop()
	w.end()
	requested := w.requested()
	most := int(w.clock.Since(clustertest.Now)/measuredEvery) + 1
	if requested["GET /api/v1/nodes"] != 1 || requested["GET /api/v1/pods"] != 1 || requested["GET "+metricsPath] > most {
		t.Errorf("got %v in %s", requested, w.clock.Since(clustertest.Now))
	}
}

// A view is made as soon as something has changed, but not before 24 times as long as the last one took to make is over: less
// than a twentieth of a core is spent on views.
func TestDue(t *testing.T) {
	w := startWatch(t, 0, "node", "-w") // for its mirror's sake: there is none without a cluster
	w.shows("NODE")
	w.stop()
	w.end()
	client, err := w.cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	mirror, err := collect.NewMirror(t.Context(), client, collect.Options{Now: w.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer mirror.Close()
	o := &Options{IO: &iostreams.IOStreams{Clock: w.clock}, WatchFlags: cmdutil.WatchFlags{Interval: 5 * time.Second}}
	now := w.clock.Now()
	for name, tt := range map[string]struct {
		took, after     time.Duration
		changed, screen bool
		want            bool
	}{
		"nothing changed":               {0, time.Second, false, true, false},
		"something changed":             {0, time.Second, true, true, true},
		"a pipe waits":                  {0, time.Second, true, false, false},
		"the interval is over":          {0, 5 * time.Second, false, true, true},
		"the interval, pipe":            {0, 5 * time.Second, false, false, true},
		"large, changed, too early":     {time.Second, 23 * time.Second, true, true, false},
		"large, changed, rested":        {time.Second, 24 * time.Second, true, true, true},
		"large, the interval stretches": {2 * time.Second, 47 * time.Second, false, true, false},
	} {
		at := &watching{o: o, mirror: mirror}
		if tt.screen {
			at.screen = &iostreams.Screen{}
		}
		seen := mirror.Changes()
		if tt.changed {
			seen--
		}
		at.take(looked{changes: seen, took: tt.took})
		if got := at.due(now.Add(tt.after)); got != tt.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// Into a pipe goes one frame after the other, without any control characters.
func TestWatchPiped(t *testing.T) {
	w := startWatch(t, 0, "node", "-w")
	w.shows("gangctl top node  2026-11-21T14:00:00Z\n\nNODE")
	w.shows("the median)\n\ngangctl top node  2026-11-21T14:00:")
	w.stop()
	if failed := w.end(); failed == nil || failed.Code != failure.CodeInterrupted || strings.Contains(w.out.String(), "\x1b") {
		t.Errorf("got %+v\n%s", failed, w.out)
	}
}

// Letters stay with their consumers while a view is redrawn.
func TestLettersStay(t *testing.T) {
	first := letters(nil).assign(usage.OfNodes(clusterview.New(shop().Done())))
	c := shop()
	c.Runs("newcomer", 8, "gpu-5")
	second := first.assign(usage.OfNodes(clusterview.New(c.Done())))
	for consumer, letter := range first {
		if second[consumer] != letter {
			t.Errorf("%s was %c and is %c", consumer, letter, second[consumer])
		}
	}
	if len(second) != len(first)+1 {
		t.Errorf("got %v", second)
	}
}
