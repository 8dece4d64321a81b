package wait

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
)

const (
	jobsPath = "/apis/kubeflow.org/v1/namespaces/research/tfjobs"
	podsPath = "/api/v1/namespaces/research/pods"
)

func run(t *testing.T, s *kubetest.Server, args ...string) (stderr string, failed *failure.Error) {
	t.Helper()
	return runNotify(t, s, func() {}, args...)
}

// runNotify calls written once something is on standard error.
func runNotify(t *testing.T, s *kubetest.Server, written func(), args ...string) (stderr string, failed *failure.Error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	f, streams := commandtest.Factory("research", kubetest.Created.Time, 0, s.Client)
	f.IO.ErrOut = notifier{f.IO.ErrOut, sync.OnceFunc(written)}
	_, stderr, failed = commandtest.Run(ctx, NewCommand(f, nil), streams, args...)
	return stderr, failed
}

// notifier is a writer that reports each write.
type notifier struct {
	io.Writer
	written func()
}

func (n notifier) Write(p []byte) (int, error) {
	defer n.written()
	return n.Writer.Write(p)
}

// serve makes lists and watches of a path: list is called for each list, and the first watch ends with an expired version when expire is
// closed, so that who watches has to list again.
func serve(s *kubetest.Server, path string, expire <-chan struct{}, list func(n int32) any) *atomic.Int32 {
	lists, watches := &atomic.Int32{}, &atomic.Int32{}
	s.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.FormValue("sendInitialEvents") != "":
			kubetest.Write(w, 422, kubetest.Status(422, metav1.StatusReasonInvalid, "sendInitialEvents is forbidden", nil))
		case r.FormValue("watch") == "":
			kubetest.Write(w, 200, list(lists.Add(1)))
		case watches.Add(1) == 1:
			select {
			case <-expire:
			case <-r.Context().Done():
				return
			}
			expired, err := json.Marshal(kubetest.Status(410, metav1.StatusReasonExpired, "too old", nil))
			if err != nil {
				panic(err)
			}
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(metav1.WatchEvent{Type: "ERROR", Object: runtime.RawExtension{Raw: expired}}); err != nil {
				panic(err)
			}
		default:
			<-r.Context().Done()
		}
	})
	return lists
}

// A job is followed over a watch that expires, to its end: good or bad.
func TestWaitsOverAnExpiredWatch(t *testing.T) {
	for _, tt := range []struct {
		end     kubeflowv1.JobConditionType
		target  string
		code    failure.Code
		message string
	}{
		{kubeflowv1.JobSucceeded, "done", failure.CodeOK, ""},
		{kubeflowv1.JobFailed, "failed", failure.CodeOK, ""},
		{kubeflowv1.JobFailed, "done", failure.CodeJobFailed, "TFJob research/llama failed: it was not to be"},
	} {
		s := kubetest.New(t)
		s.Answer("GET "+jobsPath+"/llama", 200, kubetest.Job("research", "llama", 1))
		first := make(chan struct{}) // line of progress
		lists := serve(s, jobsPath, first, func(n int32) any {
			job := kubetest.Job("research", "llama", 1)
			if n > 1 {
				job.Status.Conditions = []kubeflowv1.JobCondition{{Type: tt.end, Status: corev1.ConditionTrue, Message: "it was not to be"}}
			}
			return kubetest.JobList("", job)
		})
		serve(s, podsPath, first, func(int32) any { return kubetest.PodList(kubetest.Pod("research", "llama", 0, "n1", "")) })
		stderr, failed := runNotify(t, s, func() { close(first) }, "llama", "--for", tt.target)
		if (tt.code == failure.CodeOK) != (failed == nil) || failed != nil && (failed.Code != tt.code || failed.Message != tt.message) {
			t.Errorf("%s: got %+v", tt.target, failed)
		}
		if !strings.HasPrefix(stderr, "llama: Running, 1/1 scheduled, 1/1 running\nllama: ") || lists.Load() != 2 {
			t.Errorf("%s: %d lists, %s", tt.target, lists.Load(), stderr)
		}
	}
}

// Without --for it is until all of it runs; when the time is over, the error has how far it came.
func TestTimeout(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET "+jobsPath+"/llama", 200, kubetest.Job("research", "llama", 2))
	serve(s, jobsPath, nil, func(int32) any { return kubetest.JobList("", kubetest.Job("research", "llama", 2)) })
	serve(s, podsPath, nil, func(int32) any { return kubetest.PodList(kubetest.Pod("research", "llama", 0, "", "no room")) })
	_, failed := run(t, s, "llama", "--timeout", "500ms")
	if failed == nil || failed.Code != failure.CodeTimedOut ||
		!strings.HasPrefix(failed.Message, "TFJob research/llama: not every member runs after 500ms: Pending, 0/2 scheduled, 0/2 running") {
		t.Fatalf("got %+v", failed)
	}
	if !strings.Contains(failed.Hint, "the job is left as it is; look at it with `gangctl get tfjob/llama -n research`") {
		t.Errorf("hint: %s", failed.Hint)
	}
}

func TestNotFound(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET "+jobsPath, 200, kubetest.JobList("", kubetest.Job("research", "llama-2", 1)))
	s.Refuse("GET "+jobsPath+"/llama", 404, metav1.StatusReasonNotFound, "no", &metav1.StatusDetails{Name: "llama"})
	if _, failed := run(t, s, "llama"); failed == nil || failed.Message != "get job research/llama: not found" || failed.Hint != "did you mean llama-2?" {
		t.Errorf("got %+v", failed)
	}
}
