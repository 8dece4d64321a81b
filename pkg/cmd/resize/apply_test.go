package resize

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	typedfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

var (
	tfjobs    = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"}
	podGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
)

// apiServer keeps a job of four workers and its PodGroup, and fails where a test has it fail.
type apiServer struct {
	*dynamicfake.FakeDynamicClient
	// jobs is the kind of the job.
	jobs schema.GroupVersionResource
	// writes are those that were stored; from the write that is number dies on, counted from 0, nothing is answered any more, if it is not negative.
	writes, dies int
	// loses is the number of the write, counted from 1, that is stored and whose answer is lost; 0 for none.
	loses int
	// refuse answers a write instead of the server; nil for none.
	refuse func(n int, resource string) error
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	return serving(t, tfjobs, clustertest.Gang{Workers: 4, GPUs: 2, Missing: 4})
}

// serving is a server that keeps a job of a kind, called llama, and its PodGroup.
func serving(t *testing.T, kind schema.GroupVersionResource, g clustertest.Gang, more ...runtime.Object) *apiServer {
	t.Helper()
	g.Namespace, g.Name = "team", "llama"
	s := clustertest.New().Add(g).Done()
	objects := more
	for _, list := range s.Custom {
		for _, u := range list {
			objects = append(objects, u)
		}
	}
	kinds := map[schema.GroupVersionResource]string{kind: "JobList", podGroups: "PodGroupList"}
	a := &apiServer{jobs: kind, FakeDynamicClient: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...), dies: -1}
	a.PrependReactor("*", "*", a.react)
	return a
}

var errDead = errors.New("connection refused")

func (a *apiServer) react(action clienttesting.Action) (bool, runtime.Object, error) {
	dead := a.dies >= 0 && a.writes >= a.dies
	patch, isPatch := action.(clienttesting.PatchActionImpl)
	dry := isPatch && len(patch.PatchOptions.DryRun) > 0
	switch {
	case dead && (!dry || a.dies == 0):
		return true, nil, errDead
	case dry:
		stored, err := a.Tracker().Get(action.GetResource(), action.GetNamespace(), patch.Name)
		return true, stored, err
	case !isPatch:
		return false, nil, nil
	}
	if a.refuse != nil {
		if err := a.refuse(a.writes, action.GetResource().Resource); err != nil {
			return true, nil, err
		}
	}
	if a.writes++; a.writes == a.loses {
		if _, _, err := clienttesting.ObjectReaction(a.Tracker())(action); err != nil {
			return true, nil, err
		}
		return true, nil, errDead
	}
	return false, nil, nil
}

func (a *apiServer) get(t *testing.T, gvr schema.GroupVersionResource) *unstructured.Unstructured {
	t.Helper()
	u, err := a.Tracker().Get(gvr, "team", "llama")
	if err != nil {
		t.Fatal(err)
	}
	return u.(*unstructured.Unstructured).DeepCopy()
}

// target is the job as it is stored now.
func (a *apiServer) target(t *testing.T) *target {
	t.Helper()
	object, group := a.get(t, a.jobs), a.get(t, podGroups)
	job, err := jobs.Read(object)
	if err != nil {
		t.Fatal(err)
	}
	begun, err := resize.Begun(&job.Meta)
	if err != nil {
		t.Fatal(err)
	}
	w := view.New(clustertest.New().Put(object).Put(group).Done())
	found, err := w.Find(view.Query{Namespace: "team", Name: "llama"})
	if err != nil {
		t.Fatal(err)
	}
	client := &kube.Client{Dynamic: a, Typed: typedfake.NewClientset()}
	return &target{client: client, job: job, gang: w.Gang(found), group: group, begun: begun}
}

// applier plans two workers from what is stored now, as a run of the command does.
func (a *apiServer) applier(t *testing.T) *applier {
	t.Helper()
	two := int32(2)
	return a.applying(t, resize.Change{Roles: []resize.Role{{Name: "Worker", Replicas: &two}}})
}

// applying plans a change of what is stored now.
func (a *apiServer) applying(t *testing.T, c resize.Change) *applier {
	t.Helper()
	to := a.target(t)
	plan, err := resize.New(to.gang, to.job.Object, to.group, c, to.begun)
	if err != nil {
		t.Fatal(err)
	}
	io, _, _, _ := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	return newApplier(to.client, io, to.job, plan, time.Minute, time.Millisecond)
}

// interrupted has a run die after its writes of a number.
func (a *apiServer) interrupted(t *testing.T, writes int) {
	t.Helper()
	a.dies = writes
	if err := a.applier(t).apply(t.Context()); err == nil {
		t.Fatal("the run that is killed fails")
	}
	a.dies, a.writes = -1, 0
}

// policy refuses the write that is number n, counted from 0, and those after it if all is true.
func policy(n int, all bool) func(int, string) error {
	refused := false
	return func(write int, resource string) error {
		if write < n || refused && !all {
			return nil
		}
		refused = true
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "llama", errors.New("a policy"))
	}
}

// stored is what of the job and its group a change is about, in one line.
func (a *apiServer) stored(t *testing.T) string {
	t.Helper()
	job, group := a.get(t, tfjobs), a.get(t, podGroups)
	workers, _, _ := unstructured.NestedInt64(job.Object, "spec", "tfReplicaSpecs", "Worker", "replicas")
	minimum, _, _ := unstructured.NestedInt64(group.Object, "spec", "minMember")
	suspended, _, _ := unstructured.NestedBool(job.Object, "spec", "runPolicy", "suspend")
	return fmt.Sprintf("%d workers, minimum %d, suspended %t, begun %t", workers, minimum, suspended, job.GetAnnotations()[resize.Annotation] != "")
}

const (
	before = "4 workers, minimum 4, suspended false, begun false"
	after  = "2 workers, minimum 2, suspended false, begun false"
)

func TestApply(t *testing.T) {
	a := newAPIServer(t)
	if err := a.applier(t).apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := a.stored(t); got != after || a.writes != 3 {
		t.Errorf("got %s after %d writes", got, a.writes)
	}
}

// A run that dies between any two writes leaves what the next completes.
func TestKilledAtEveryStep(t *testing.T) {
	for dies, between := range []string{
		before,
		"4 workers, minimum 4, suspended true, begun true",
		"4 workers, minimum 2, suspended true, begun true",
		after,
	} {
		t.Run(fmt.Sprintf("after write %d", dies), func(t *testing.T) {
			a := newAPIServer(t)
			a.dies = dies
			err := a.applier(t).apply(t.Context())
			if got := a.stored(t); got != between || (err == nil) != (dies == 3) {
				t.Fatalf("killed: %s, %v\nwant %s", got, err, between)
			}
			if dies == 3 {
				return
			}
			a.dies = -1
			if err := a.applier(t).apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := a.stored(t); got != after {
				t.Errorf("run again: %s", got)
			}
		})
	}
}

// A write that is refused undoes those before it, and the error has what was undone.
func TestRefusedAtEveryStep(t *testing.T) {
	for n, undone := range []string{
		"",
		"undone: the suspension of TFJob team/llama",
		"undone: the change of PodGroup team/llama, the suspension of TFJob team/llama",
	} {
		t.Run(fmt.Sprintf("write %d", n), func(t *testing.T) {
			a := newAPIServer(t)
			refused := false
			a.refuse = func(write int, resource string) error {
				if write != n || refused {
					return nil
				}
				refused = true
				return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "llama", errors.New("a policy"))
			}
			err := failure.From(a.applier(t).apply(t.Context()))
			if err == nil || !strings.HasSuffix(err.Message, undone) || !strings.Contains(err.Message, "a policy") {
				t.Errorf("got %v\nwant …%s", err, undone)
			}
			if got := a.stored(t); got != before {
				t.Errorf("got %s", got)
			}
		})
	}
}

// A write whose answer is lost is undone with those before it; the last has done it all.
func TestAnswersLostAtEveryStep(t *testing.T) {
	for i, want := range []string{before, before, after} {
		a := newAPIServer(t)
		a.loses = i + 1
		err := a.applier(t).apply(t.Context())
		if got := a.stored(t); got != want || (err == nil) != (want == after) {
			t.Errorf("write %d: %s, %v\nwant %s", i, got, err, want)
		}
	}
}

// A run that completes another and fails takes back what either wrote.
func TestCompletionIsUndone(t *testing.T) {
	for dies, undone := range map[int]string{
		1: "undone: the suspension of TFJob team/llama",
		2: "undone: the change of PodGroup team/llama, the suspension of TFJob team/llama",
	} {
		a := newAPIServer(t)
		a.interrupted(t, dies)
		a.refuse = policy(0, false)
		err := failure.From(a.applier(t).apply(t.Context()))
		if err == nil || !strings.Contains(err.Message, "a policy") || !strings.HasSuffix(err.Message, undone) {
			t.Errorf("after %d writes: %+v", dies, err)
		}
		if got := a.stored(t); got != before {
			t.Errorf("after %d writes: %s", dies, got)
		}
	}
	a := newAPIServer(t)
	a.interrupted(t, 2)
	a.refuse = policy(0, true)
	err := failure.From(a.applier(t).apply(t.Context()))
	if err == nil || !strings.Contains(err.Hint, "gangctl resize tfjob/llama -n team --abort") {
		t.Errorf("what cannot be undone: %+v", err)
	}
	if got := a.stored(t); got != "4 workers, minimum 2, suspended true, begun true" {
		t.Errorf("what cannot be undone: %s", got)
	}
}

// A controller that writes the status is not in the way; another client that changes the job is, and what it changed is shown.
func TestChangedMeanwhile(t *testing.T) {
	change := func(a *apiServer, edit func(*unstructured.Unstructured)) {
		conflicts := 0
		a.refuse = func(write int, resource string) error {
			if write != 0 || conflicts > 0 {
				return nil
			}
			conflicts++
			u, err := a.Tracker().Get(tfjobs, "team", "llama")
			if err != nil {
				return err
			}
			edit(u.(*unstructured.Unstructured))
			if err := a.Tracker().Update(tfjobs, u, "team"); err != nil {
				return err
			}
			return apierrors.NewConflict(schema.GroupResource{Resource: resource}, "llama", errors.New("it was modified"))
		}
	}
	a := newAPIServer(t)
	change(a, func(u *unstructured.Unstructured) {
		u.Object["status"] = map[string]any{"startTime": "2026-11-21T14:00:00Z"}
	})
	if err := a.applier(t).apply(t.Context()); err != nil || a.stored(t) != after {
		t.Errorf("its status: %v, %s", err, a.stored(t))
	}
	a = newAPIServer(t)
	change(a, func(u *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(u.Object, int64(3), "spec", "tfReplicaSpecs", "Worker", "replicas"); err != nil {
			t.Error(err)
		}
	})
	err := failure.From(a.applier(t).apply(t.Context()))
	if err == nil || !strings.HasSuffix(err.Message, "another client has changed it meanwhile") || !strings.Contains(err.Hint, "different:\n-      replicas: 4\n+      replicas: 3") {
		t.Errorf("got %v", err)
	}
	if got := a.stored(t); got != "3 workers, minimum 4, suspended false, begun false" {
		t.Errorf("what the other client wrote: %s", got)
	}
}

// A job that another command deletes while it is changed is reported as that: there is nothing to complete.
func TestDeletedMeanwhile(t *testing.T) {
	for write := range 3 {
		a := newAPIServer(t)
		a.refuse = func(n int, resource string) error {
			if n != write {
				return nil
			}
			if err := a.Tracker().Delete(tfjobs, "team", "llama"); err != nil {
				return err
			}
			return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, "llama")
		}
		err := failure.From(a.applier(t).apply(t.Context()))
		if err == nil || err.Message != "resize TFJob team/llama: it was deleted meanwhile" || err.Code != failure.CodeJobFailed || strings.Contains(err.Hint, "complete it") {
			t.Errorf("at write %d: got %+v", write, err)
		}
	}
	a := newAPIServer(t)
	applier := a.applier(t)
	waits := false
	a.PrependReactor("get", "tfjobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		if waits {
			return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "tfjobs"}, "llama")
		}
		return false, nil, nil
	})
	applier.client.Typed = busy(t)
	pods := applier.client.Typed.(*typedfake.Clientset)
	pods.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		waits = true
		return true, &corev1.PodList{}, nil
	})
	err := failure.From(applier.apply(t.Context()))
	if err == nil || err.Message != "resize TFJob team/llama: it was deleted meanwhile" {
		t.Errorf("while its pods end: got %+v", err)
	}
}

// What another client changed is shown without the values of variables, copies of manifests and credentials.
func TestErrorsKeepNoSecrets(t *testing.T) {
	of := func(value string) *unstructured.Unstructured {
		env := []any{map[string]any{"name": "HF_TOKEN", "value": value}, map[string]any{"name": "PLAIN", "value": value}}
		container := map[string]any{"name": "tensorflow", "env": env, "args": []any{"--token", value}}
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "spec": map[string]any{"containers": []any{container}}}}
		u.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": value, "api-key": value})
		return u
	}
	for _, more := range []string{"", "changed"} {
		seen, now := of("LEAK1"), of("LEAK2")
		if more != "" {
			now.SetLabels(map[string]string{"team": more})
		}
		err := failure.From(changedMeanwhile(failure.Op{Verb: "patch", Kind: "TFJob", Name: "llama"}, seen, now))
		if shown := err.Message + err.Hint; strings.Contains(shown, "LEAK") || !strings.Contains(shown, more) || strings.Contains(err.Message, "\n") {
			t.Errorf("got %s", shown)
		}
	}
}

// Ctrl-C while pods end leaves the job suspended: resumed, it would fail. The next run completes it.
func TestInterrupted(t *testing.T) {
	a := newAPIServer(t)
	applier := a.applier(t)
	ctx, interrupt := context.WithCancel(t.Context())
	a.refuse = func(write int, _ string) error {
		if write == 0 {
			interrupt()
		}
		return nil
	}
	applier.client.Typed = busy(t)
	err := failure.From(applier.apply(ctx))
	if err == nil || err.Code != failure.CodeInterrupted || !strings.Contains(err.Hint, "gangctl resize tfjob/llama -n team") {
		t.Errorf("got %+v", err)
	}
	if got := a.stored(t); got != "4 workers, minimum 4, suspended true, begun true" {
		t.Errorf("got %s", got)
	}
}

// busy has a pod of the job that does not end.
func busy(t *testing.T) *typedfake.Clientset {
	t.Helper()
	s := clustertest.New().Add(clustertest.Gang{Namespace: "team", Name: "llama", Workers: 1, GPUs: 2}).Done()
	pod := s.Pods[0].DeepCopy()
	if owner := metav1.GetControllerOf(pod); owner == nil || pod.Labels["training.kubeflow.org/job-name"] != "llama" {
		t.Fatalf("the pod is of no job: %v", pod.ObjectMeta)
	}
	return typedfake.NewClientset(pod)
}

// The API server lets the template of a Job be changed once its status has that it is suspended, which is after its pods are gone.
func TestAwaitsTheStatusOfAJob(t *testing.T) {
	gvr := batchv1.SchemeGroupVersion.WithResource("jobs")
	status := func(more map[string]any) *unstructured.Unstructured {
		maps.Copy(more, map[string]any{"startTime": "2026-11-21T14:00:00Z"})
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"namespace": "team", "name": "llama"}, "spec": map[string]any{}, "status": more,
		}}
	}
	suspended := []any{map[string]any{"type": "Suspended", "status": "True"}}
	answers := []*unstructured.Unstructured{
		status(map[string]any{"active": int64(4)}), status(map[string]any{}), status(map[string]any{"active": int64(1), "conditions": suspended}),
		status(map[string]any{"conditions": suspended}),
	}
	job, err := jobs.Read(answers[0])
	if err != nil {
		t.Fatal(err)
	}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{gvr: "JobList"})
	asked := 0
	client.PrependReactor("get", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		answer := answers[min(asked, len(answers)-1)]
		asked++
		return true, answer, nil
	})
	io, _, _, _ := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	a := &applier{
		client: &kube.Client{Dynamic: client, Typed: typedfake.NewClientset()}, io: io, job: job, timeout: time.Minute, interval: time.Millisecond,
		plan: &resize.Plan{Restarts: true, Job: resize.Object{Before: answers[0], After: answers[0]}},
	}
	if err := a.await(t.Context()); err != nil || asked != len(answers) {
		t.Errorf("%v after %d answers, want %d", err, asked, len(answers))
	}
	asked, answers, a.timeout = 0, answers[:1], 20*time.Millisecond
	if err := failure.From(a.await(t.Context())); err == nil || err.Code != failure.CodeTimedOut || !strings.Contains(err.Message, "its controller has not reported it as suspended") {
		t.Errorf("without a controller: %v", err)
	}
}
