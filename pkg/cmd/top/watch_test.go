package top

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/cmd/factory"
	"github.com/gangctl/gangctl/pkg/explain/explaintest"
	"github.com/gangctl/gangctl/pkg/explain/world"
	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/iostreams"
	"github.com/gangctl/gangctl/pkg/kube/kubetest"
	"github.com/gangctl/gangctl/pkg/usage"
)

// screen is a buffer that can be read while a command writes to it.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// watched is a `top -w` that goes on.
type watched struct {
	t       *testing.T
	cluster *kubetest.Cluster
	clock   *clocktesting.FakeClock
	out     *screen
	keys    io.Writer
	stop    context.CancelFunc
	ended   chan *failure.Error
}

func startWatch(t *testing.T, width int, args ...string) *watched {
	t.Helper()
	w := &watched{t: t, cluster: kubetest.Serve(t, shop().Done()), clock: clocktesting.NewFakeClock(explaintest.Now), out: &screen{}, ended: make(chan *failure.Error, 1)}
	streams, _, _, _ := iostreams.Test(w.clock)
	streams.SetOut(w.out)
	keys, typed := io.Pipe()
	streams.In, w.keys = keys, typed
	if width > 0 {
		streams.SetTerminal(width)
	}
	cmd := NewCommand(&factory.Factory{IO: streams, Client: w.cluster.Client, Namespace: func() (string, error) { return "team", nil }}, nil)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	ctx, cancel := context.WithCancel(t.Context())
	w.stop = cancel
	go func() { w.ended <- failure.From(cmd.ExecuteContext(ctx)) }()
	return w
}

// shows waits until the screen shows something.
func (w *watched) shows(what string) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(w.out.String(), what); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("no %q in\n%.4000s", what, w.out)
		}
		if w.clock.HasWaiters() {
			w.clock.Step(500 * time.Millisecond)
		}
	}
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

// Trouble is told in the frame and passes.
func TestWatchTrouble(t *testing.T) {
	w := startWatch(t, 120, "node", "-w")
	w.shows("gpu-1")
	w.cluster.Fail("/api/v1/nodes", kubetest.Status(500, metav1.StatusReasonInternalError, "etcd is gone", nil))
	w.shows("note: list Nodes in all namespaces: etcd is gone; trying again")
	w.cluster.Fail("/api/v1/nodes", nil)
	before := len(w.out.String())
	for !regexp.MustCompile(`q quits\)\x1b\[K\r\n\x1b\[K\r\nNODE`).MatchString(w.out.String()[before:]) {
		w.shows("gpu-1")
		w.clock.Step(time.Second)
		time.Sleep(time.Millisecond)
	}
	w.stop()
	w.end()
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

// Letters stay with their holders while a view is redrawn.
func TestLettersStay(t *testing.T) {
	first := letters(nil).assign(usage.OfNodes(world.New(shop().Done())))
	c := shop()
	c.Runs("newcomer", 8, "gpu-5")
	second := first.assign(usage.OfNodes(world.New(c.Done())))
	for holder, letter := range first {
		if second[holder] != letter {
			t.Errorf("%s was %c and is %c", holder, letter, second[holder])
		}
	}
	if len(second) != len(first)+1 {
		t.Errorf("got %v", second)
	}
}
