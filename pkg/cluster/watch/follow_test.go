package watch

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang"
)

const (
	jobsPath = "/apis/kubeflow.org/v1/namespaces/research/tfjobs"
	podsPath = "/api/v1/namespaces/research/pods"
)

// llama is the job that is followed.
func llama(t *testing.T) *gang.Job {
	t.Helper()
	job, err := jobs.Read(kubetest.Stored(t, kubetest.Job("research", "llama", 1)))
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func follower(t *testing.T, s *kubetest.Server, trouble func(error)) *Follower {
	t.Helper()
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	return &Follower{Client: client, Job: llama(t), Trouble: trouble}
}

// A right that is missing does not come by waiting: Run ends at once and reports which.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name, path string
		code       int
		reason     metav1.StatusReason
		want       string
	}{
		{"403", jobsPath, 403, metav1.StatusReasonForbidden, "watch TFJob research/llama: no"},
		{"401", podsPath, 401, metav1.StatusReasonUnauthorized, "watch pods in namespace research: no"},
		{"404", jobsPath, 404, metav1.StatusReasonNotFound, "watch TFJob research/llama: no"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			s := kubetest.New(t)
			s.Refuse("GET "+tt.path, tt.code, tt.reason, "no", nil)
			other := map[string]string{jobsPath: podsPath, podsPath: jobsPath}[tt.path]
			s.HandleFunc("GET "+other, hang)
			err := follower(t, s, func(error) {}).Run(ctx, func(Snapshot) (bool, error) { return true, nil })
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// A login that ends while a job is followed ends that, too: it does not come back by waiting.
func TestNoLogin(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	config := &rest.Config{Host: "http://127.0.0.1:1"}
	config.Wrap(func(http.RoundTripper) http.RoundTripper { return noLogin{} })
	client, err := kube.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	f := &Follower{Client: client, Job: llama(t), Trouble: func(err error) { t.Errorf("reported as trouble: %v", err) }}
	err = f.Run(ctx, func(Snapshot) (bool, error) { return true, nil })
	if got := failure.From(err); got == nil || !strings.HasSuffix(got.Message, ": cannot get credentials: exec: exit code 7") {
		t.Errorf("got %+v", got)
	}
}

// noLogin fails as client-go does where the program that gets credentials fails.
type noLogin struct{}

func (noLogin) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("getting credentials: exec: exit code 7")
}

// A server that has trouble is tried again, and the user hears of it.
func TestTrouble(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s := kubetest.New(t)
	s.Refuse("GET "+jobsPath, 500, metav1.StatusReasonInternalError, "etcd is gone", nil)
	s.HandleFunc("GET "+podsPath, hang)
	heard := make(chan error, 1)
	err := follower(t, s, func(err error) {
		select {
		case heard <- err:
			cancel()
		default:
		}
	}).Run(ctx, func(Snapshot) (bool, error) { return true, nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	trouble := <-heard
	if !apierrors.IsInternalError(trouble) || failure.From(trouble).Message != "watch TFJob research/llama: etcd is gone" {
		t.Errorf("heard %v", trouble)
	}
}

// A server that is not there is reported once, and not for every attempt.
func TestDown(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	gone := "http://" + kubetest.Refusing(t)
	client, err := kube.NewClient(&rest.Config{Host: gone})
	if err != nil {
		t.Fatal(err)
	}
	var reported []error
	f := &Follower{Client: client, Job: llama(t), Trouble: func(err error) { reported = append(reported, err) }}
	err = f.Run(ctx, func(Snapshot) (bool, error) { return true, nil })
	if !errors.Is(err, context.DeadlineExceeded) || len(reported) != 1 || !strings.Contains(failure.From(reported[0]).Message, "cannot reach the API server at "+gone) {
		t.Errorf("got %v, reported %v", err, reported)
	}
}

func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
