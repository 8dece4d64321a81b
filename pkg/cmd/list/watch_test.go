package list

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// What changes is redrawn, trouble is noted above what was seen last, and q gives the screen back.
func TestWatch(t *testing.T) {
	for _, width := range []int{0, 100} {
		s, clock, screen := kubetest.New(t), clocktesting.NewFakeClock(kubetest.Created.Add(5*time.Minute)), &kubetest.Screen{}
		var state atomic.Value
		state.Store("one")
		s.HandleFunc("GET "+jobsPath, func(w http.ResponseWriter, _ *http.Request) {
			if state.Load() == "trouble" {
				kubetest.Write(w, 500, kubetest.Status(500, metav1.StatusReasonInternalError, "etcd is gone", nil))
				return
			}
			kubetest.Write(w, 200, kubetest.JobList("", kubetest.Job("research", state.Load().(string), 1)))
		})
		s.Answer("GET "+podsPath, 200, kubetest.PodList())
		streams, _, _, _ := iostreams.Test(clock)
		streams.SetOut(screen)
		streams.ErrOut = screen
		keys, typed := io.Pipe()
		streams.In = keys
		if width > 0 {
			streams.SetTerminal(width)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan *failure.Error, 1)
		go func() {
			cmd := NewCommand(&cmdutil.Factory{IO: streams, Client: s.Client, Namespace: func() (string, error) { return "research", nil }}, nil)
			ended <- failure.From(commandtest.Execute(ctx, cmd, "-w"))
		}()
		for _, want := range []string{"one", "two", "trouble"} {
			state.Store(want)
			if want == "trouble" {
				want = "etcd is gone; trying again"
			}
			poll.Until(t, want, func() bool {
				if clock.HasWaiters() {
					clock.Step(time.Second)
				}
				return strings.Contains(screen.String(), want)
			})
		}
		if width == 0 {
			cancel()
		} else if _, err := typed.Write([]byte("q")); err != nil {
			t.Fatal(err)
		}
		failed := <-ended
		if (failed == nil) != (width > 0) || failed != nil && failed.Code != failure.CodeInterrupted {
			t.Errorf("%d columns: got %+v", width, failed)
		}
		if last := screen.String(); width > 0 && (!strings.HasSuffix(last, "\x1b[?1049l") || !strings.Contains(last[strings.LastIndex(last, "etcd"):], "two")) {
			t.Errorf("got %q", last)
		}
	}
}
