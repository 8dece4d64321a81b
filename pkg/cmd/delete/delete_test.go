package delete

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang/kind/tfjob"
)

const jobsPath = "/apis/kubeflow.org/v1/namespaces/research/tfjobs"

// run runs the command line with a client.
func run(ctx context.Context, client func() (*kube.Client, error), args ...string) (stdout, stderr string, err error) {
	f, streams := commandtest.Factory("research", time.Time{}, 0, client)
	err = commandtest.Execute(ctx, NewCommand(f, nil), args...)
	return streams.Out.String(), streams.ErrOut.String(), err
}

// Every name is tried, and the failures are reported together.
func TestEachIsTried(t *testing.T) {
	s := kubetest.New(t)
	for _, name := range []string{"a", "c"} {
		s.Answer("GET "+jobsPath+"/"+name, 200, kubetest.Job("research", name, 1))
		s.Answer("DELETE "+jobsPath+"/"+name, 200, &metav1.Status{Status: metav1.StatusSuccess})
	}
	s.Answer("GET "+jobsPath, 200, kubetest.JobList(""))
	s.Answer("GET "+jobsPath+"/b", 200, kubetest.Job("research", "b", 1))
	s.Refuse("GET "+jobsPath+"/d", 404, metav1.StatusReasonNotFound, "no", &metav1.StatusDetails{Name: "d"})
	s.Refuse("DELETE "+jobsPath+"/b", 403, metav1.StatusReasonForbidden, `User "bob" cannot delete resource "tfjobs" in API group`, nil)
	stdout, _, err := run(t.Context(), s.Client, "d", "c", "b", "a", "a", "--wait=false")
	if want := "tfjob.kubeflow.org/a deleted\ntfjob.kubeflow.org/c deleted\n"; stdout != want {
		t.Errorf("stdout: %q", stdout)
	}
	got := failure.From(err)
	if want := `delete TFJob research/b: User "bob" cannot delete resource "tfjobs" in API group` + "\nget job research/d: not found"; got == nil || got.Message != want || got.Code != failure.CodeError {
		t.Fatalf("got %+v", got)
	}
	if !strings.Contains(got.Hint, `verbs: ["delete"]`) {
		t.Errorf("hint: %s", got.Hint)
	}
	requests := s.Requests()
	first := slices.IndexFunc(requests, func(r string) bool { return strings.HasPrefix(r, "DELETE") })
	if len(s.AboutTFJobs()) != 9 || !strings.Contains(s.Body(first), `"propagationPolicy":"Background"`) {
		t.Errorf("requests: %q, the first delete with %s", requests, s.Body(first))
	}
}

// A slip of the finger gets the name that was meant, whether or not the command waits.
func TestMissingJob(t *testing.T) {
	for _, wait := range []string{"--wait=true", "--wait=false"} {
		s := kubetest.New(t)
		s.Answer("GET "+jobsPath, 200, kubetest.JobList("", kubetest.Job("research", "llama-2", 1), kubetest.Job("research", "mistral", 1)))
		for _, verb := range []string{"GET ", "DELETE "} {
			s.Refuse(verb+jobsPath+"/llama", 404, metav1.StatusReasonNotFound, "no", &metav1.StatusDetails{Name: "llama"})
		}
		_, _, err := run(t.Context(), s.Client, "llama", wait)
		got := failure.From(err)
		if got == nil || got.Message != "get job research/llama: not found" || got.Hint != "did you mean llama-2?" {
			t.Errorf("%s: got %+v", wait, got)
		}
	}
}

// What is deleted is what was seen: not a job of the same name that was created in between.
func TestDeletesWhatItSaw(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET "+jobsPath+"/a", 200, kubetest.Job("research", "a", 1))
	s.Answer("GET /api/v1/namespaces/research/pods", 200, kubetest.PodList())
	s.Refuse("DELETE "+jobsPath+"/a", 409, metav1.StatusReasonConflict, "the UID in the precondition does not match", &metav1.StatusDetails{Name: "a"})
	_, _, err := run(t.Context(), s.Client, "a")
	if err == nil || err.Error() != "delete TFJob research/a: the UID in the precondition does not match" {
		t.Errorf("got %v", err)
	}
	if body := s.Body(len(s.Requests()) - 1); !strings.Contains(body, `"preconditions":{"uid":"research-a"}`) {
		t.Errorf("delete options: %s", body)
	}
}

// clients hold one job with one pod; deleting the job does nothing more, as on a cluster whose garbage collector is slow.
func clients(t *testing.T) (*kube.Client, *fake.Clientset, *dynamicfake.FakeDynamicClient) {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(kubetest.Job("research", "llama", 1))
	if err != nil {
		t.Fatal(err)
	}
	dyn := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{tfjob.GVR(): "TFJobList"},
		&unstructured.Unstructured{Object: content})
	typed := fake.NewClientset(kubetest.Pod("research", "llama", 0, "n1", ""))
	return &kube.Client{Typed: typed, Dynamic: dyn}, typed, dyn
}

func TestWaitsForPods(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	client, typed, _ := clients(t)
	collected := make(chan struct{})
	typed.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) {
		// The command watches; only now does the garbage collector come round.
		go func() {
			close(collected)
			if err := typed.CoreV1().Pods("research").Delete(ctx, "llama-worker-0", metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}()
		return false, nil, nil
	})
	stdout, _, err := run(ctx, func() (*kube.Client, error) { return client, nil }, "llama")
	if err != nil || stdout != "tfjob.kubeflow.org/llama deleted\n" {
		t.Fatalf("got %v, %q", err, stdout)
	}
	select {
	case <-collected:
	default:
		t.Error("it did not wait for the pod")
	}
}

// Pods count of a RayCluster that got its name after the RayJob was read.
func TestWaitsForPodsOfALaterRayCluster(t *testing.T) {
	dyn := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{kubetest.RayJobs(): "RayJobList"}, kubetest.RayJob("research", "llama", ""))
	dyn.PrependReactor("delete", "rayjobs", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil }) // it has a finalizer
	typed := fake.NewClientset(kubetest.RayPod("research", "other-k2f9c", "head"))
	kubetest.SelectWatched(&typed.Fake, typed.Tracker())
	f, _ := commandtest.Factory("research", time.Time{}, 0, func() (*kube.Client, error) { return &kube.Client{Typed: typed, Dynamic: dyn}, nil })
	stderr := &kubetest.Screen{}
	f.IO.ErrOut = stderr
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- commandtest.Execute(ctx, NewCommand(f, nil), "llama") }()
	kubetest.AwaitWatch(t, &dyn.Fake, "rayjobs")
	kubetest.AwaitWatch(t, &typed.Fake, "pods")
	if _, err := dyn.Resource(kubetest.RayJobs()).Namespace("research").Update(ctx, kubetest.RayJob("research", "llama", "llama-x7k2p"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	role := "head"
	poll.Until(t, "its pods", func() bool { // the first look may come after any of them, and is not reported
		if _, err := typed.CoreV1().Pods("research").Create(ctx, kubetest.RayPod("research", "llama-x7k2p", role), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		role += "-x"
		return strings.HasPrefix(stderr.String(), "llama: waiting for the job with ")
	})
	interrupt()
	<-ended
}

// A deletion that was interrupted may have had its effect.
func TestInterruptedDeletion(t *testing.T) {
	client, _, dyn := clients(t)
	ctx, interrupt := context.WithCancel(t.Context())
	dyn.PrependReactor("delete", "tfjobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		interrupt()
		return true, nil, ctx.Err()
	})
	_, _, err := run(ctx, func() (*kube.Client, error) { return client, nil }, "llama", "mnist")
	got := failure.From(err)
	if got == nil || got.Code != failure.CodeInterrupted || got.Message != "delete TFJob research/llama: interrupted; it may have been done\ninterrupted; not tried: mnist" {
		t.Errorf("got %+v", got)
	}
}

func TestWaitEndsOtherwise(t *testing.T) {
	client, _, _ := clients(t)
	stdout, _, err := run(t.Context(), func() (*kube.Client, error) { return client, nil }, "llama", "--timeout", "300ms")
	got := failure.From(err)
	if got == nil || got.Code != failure.CodeTimedOut || got.Message != "TFJob research/llama is deleted, but not all of it is gone after 300ms: 1 pod" || stdout != "" {
		t.Errorf("timeout: got %+v, %q", got, stdout)
	}

	s := kubetest.New(t)
	s.Answer("GET "+jobsPath+"/llama", 200, kubetest.Job("research", "llama", 1))
	s.Answer("DELETE "+jobsPath+"/llama", 200, &metav1.Status{Status: metav1.StatusSuccess})
	hang := func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("watch") != "" {
			<-r.Context().Done()
		}
		kubetest.Write(w, 200, kubetest.PodList())
	}
	s.HandleFunc("GET "+jobsPath, hang)
	s.HandleFunc("GET /api/v1/namespaces/research/pods", hang)
	_, _, err = run(t.Context(), s.Client, "llama", "--timeout", "300ms")
	got = failure.From(err)
	if got == nil || got.Code != failure.CodeTimedOut || got.Message != "TFJob research/llama is deleted, but in 300ms the API server has not shown what is left of it" {
		t.Errorf("nothing seen: got %+v", got)
	}

	client, typed, _ := clients(t)
	ctx, interrupt := context.WithCancel(t.Context())
	typed.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		interrupt()
		return false, nil, nil
	})
	_, _, err = run(ctx, func() (*kube.Client, error) { return client, nil }, "llama")
	got = failure.From(err)
	if got == nil || got.Code != failure.CodeInterrupted || got.Message != "interrupted; the deletion of TFJob research/llama goes on" {
		t.Errorf("interrupted: got %+v", got)
	}
}

// A job that a finalizer keeps is reported with it, and the hint is what shows more.
func TestHeldByAFinalizer(t *testing.T) {
	client, _, dyn := clients(t)
	job := kubetest.Job("research", "llama", 1)
	job.Finalizers = []string{"x.example/y", "foregroundDeletion"}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		t.Fatal(err)
	}
	if err := dyn.Tracker().Update(tfjob.GVR(), &unstructured.Unstructured{Object: content}, "research"); err != nil {
		t.Fatal(err)
	}
	dyn.PrependReactor("delete", "tfjobs", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
	_, _, err = run(t.Context(), func() (*kube.Client, error) { return client, nil }, "llama", "--timeout", "300ms")
	got := failure.From(err)
	if got == nil || got.Message != "TFJob research/llama is deleted, but not all of it is gone after 300ms: the job with 1 pod; it waits for finalizer x.example/y" ||
		!strings.Contains(got.Hint, "`gangctl why-pending tfjob/llama -n research`") {
		t.Errorf("got %+v", got)
	}
}

// Whoever may not watch pods learns that the job is deleted all the same.
func TestDeletedAndNotWatched(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET "+jobsPath+"/llama", 200, kubetest.Job("research", "llama", 1))
	s.Answer("DELETE "+jobsPath+"/llama", 200, &metav1.Status{Status: metav1.StatusSuccess})
	s.Answer("GET "+jobsPath, 200, kubetest.JobList(""))
	s.HandleFunc("GET /api/v1/namespaces/research/pods", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("watch") == "" {
			kubetest.Write(w, 200, kubetest.PodList())
			return
		}
		kubetest.Write(w, 403, kubetest.Status(403, metav1.StatusReasonForbidden, `pods is forbidden: User "carol" cannot watch resource "pods" in API group "" in the namespace "research"`, &metav1.StatusDetails{Kind: "pods"}))
	})
	_, _, err := run(t.Context(), s.Client, "llama")
	got := failure.From(err)
	if got == nil || got.Code != failure.CodeError || !strings.HasPrefix(got.Message, "TFJob research/llama is deleted, but whether its pods are gone is not known: watch pods in namespace research: ") ||
		!strings.Contains(got.Hint, `verbs: ["watch"]`) {
		t.Errorf("got %+v", got)
	}
}

// A mistake in one name does not pass for one of the command line once another job is deleted: then something was done.
func TestMistakeAmongOthers(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET "+jobsPath+"/a", 200, kubetest.Job("research", "a", 1))
	s.Answer("DELETE "+jobsPath+"/a", 200, &metav1.Status{Status: metav1.StatusSuccess})
	stdout, _, err := run(t.Context(), s.Client, "a", "foo/x", "--wait=false")
	if got := failure.From(err); got == nil || got.Code != failure.CodeError || stdout != "tfjob.kubeflow.org/a deleted\n" {
		t.Errorf("got %+v, %q", got, stdout)
	}
	_, _, err = run(t.Context(), kubetest.New(t).Client, "foo/x")
	if got := failure.From(err); got == nil || got.Code != failure.CodeUsage {
		t.Errorf("alone: got %+v", got)
	}
}
