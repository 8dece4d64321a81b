package suspend

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// bench is a suspender and the jobs that it sees.
type bench struct {
	*Suspender
	jobs     *dynamicfake.FakeDynamicClient
	recorder *events.FakeRecorder
	pods     bool               // whether all jobs have some
	podsOf   map[types.UID]bool // the jobs that have some
	kept     bool
	dryRuns  int
	clock    *clocktesting.FakeClock
}

func (b *bench) ours(uid types.UID) bool {
	_, ok := b.Suspended(gang.Identity{Namespace: "ns", UID: uid})
	return ok
}

func newBench(jobs ...runtime.Object) *bench {
	kinds := map[schema.GroupVersionResource]string{}
	for _, resource := range Resources() {
		kinds[resource] = "JobList"
	}
	for _, version := range []string{"v1beta1", "v1beta2"} {
		kinds[schema.GroupVersionResource{Group: kueue.Group, Version: version, Resource: "workloads"}] = "WorkloadList"
	}
	b := &bench{jobs: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, jobs...), recorder: events.NewFakeRecorder(100), pods: true, clock: clocktesting.NewFakeClock(time.Now())}
	b.jobs.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchActionImpl)
		if len(patch.PatchOptions.DryRun) == 0 {
			return false, nil, nil
		}
		b.dryRuns++
		u := tfjob(patch.Name, nil)
		return true, u, unstructured.SetNestedField(u.Object, true, "spec", "runPolicy", "suspend")
	})
	b.Suspender = New(Config{
		Dynamic: b.jobs, Recorder: b.recorder, Clock: b.clock, Synced: func() bool { return true },
		Owned: func(j Target) bool { return b.pods || b.podsOf[j.UID] }, Keep: func(gang.Identity) bool { return b.kept },
	})
	return b
}

func tfjob(name string, labels map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetAPIVersion("kubeflow.org/v1")
	u.SetKind("TFJob")
	u.SetNamespace("ns")
	u.SetName(name)
	u.SetUID(types.UID("uid-" + name))
	u.SetLabels(labels)
	return u
}

func owned(apiVersion, kind, name string) *corev1.Pod {
	yes := true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: &yes},
	}}}
}

func (b *bench) get(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	u, err := b.jobs.Resource(Resources()[0]).Namespace("ns").Get(t.Context(), "llama", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// workload is Kueue's of a job; owner is whom it belongs to.
func workload(job string, owner types.UID) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(kueue.Group + "/v1beta2")
	u.SetKind("Workload")
	u.SetNamespace("ns")
	u.SetName("of-" + job)
	u.SetLabels(map[string]string{kueueJobLabel: "uid-" + job})
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "kubeflow.org/v1", Kind: "TFJob", Name: job, UID: owner}})
	return u
}

func isSuspended(u *unstructured.Unstructured) bool {
	suspended, _, _ := unstructured.NestedBool(u.Object, "spec", "runPolicy", "suspend")
	return suspended
}

func TestWhoseJobs(t *testing.T) {
	for _, c := range []struct {
		pod                   *corev1.Pod
		ok, possible, brittle bool
	}{
		{&corev1.Pod{}, false, false, false},
		{owned("apps/v1", "ReplicaSet", "r"), false, false, false},
		{owned("batch/v1", "Job", "j"), true, true, false},
		{owned("kubeflow.org/v1", "TFJob", "j"), true, true, true},
		{owned("kubeflow.org/v2beta1", "MPIJob", "j"), true, true, true},
		{owned("kubeflow.org/v1", "XGBoostJob", "j"), true, true, true},
		{owned("kubeflow.org/v1", "Sweep", "j"), true, false, true},
		{owned("batch.volcano.sh/v1alpha1", "Job", "j"), false, false, false},
	} {
		j, ok := Of(c.pod)
		if ok != c.ok || ok && (j.Possible() != c.possible || j.Brittle() != c.brittle) {
			t.Errorf("%v: %v, possible %v, brittle %v", c.pod.OwnerReferences, ok, j.Possible(), j.Brittle())
		}
	}
}

// What a webhook that takes no dry runs answers is not known before the job is suspended.
func TestCheckWithAWebhookThatTakesNoDryRuns(t *testing.T) {
	b := newBench(tfjob("llama", nil))
	j, _ := Of(owned("kubeflow.org/v1", "TFJob", "llama"))
	for _, c := range []struct {
		message string
		refused bool
	}{{`admission webhook "audit.example.com" does not support dry run`, false}, {"it is protected", true}} {
		b.jobs.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			return len(action.(clienttesting.PatchActionImpl).PatchOptions.DryRun) > 0, nil, apierrors.NewBadRequest(c.message)
		})
		if err := b.Check(t.Context(), j); (err != nil) != c.refused {
			t.Errorf("%s: %v", c.message, err)
		}
	}
}

func TestUntilAJobIsResumed(t *testing.T) {
	b := newBench(tfjob("llama", nil))
	j, _ := Of(owned("kubeflow.org/v1", "TFJob", "llama"))
	if err := b.Check(t.Context(), j); err != nil || b.dryRuns != 1 || isSuspended(b.get(t)) || b.ours(j.UID) {
		t.Fatalf("checked: %v", err)
	}
	order := Order{Reason: "Why", Why: "for others", Until: "they have gone", Annotate: true}
	if err := b.Suspend(t.Context(), j, order); err != nil || !isSuspended(b.get(t)) || !b.ours(j.UID) {
		t.Fatalf("suspended: %v", err)
	}
	if u := b.get(t); u.GetLabels()[Label] != Value || u.GetAnnotations()[BecauseAnnotation] != "for others" {
		t.Errorf("marked %v %v", u.GetLabels(), u.GetAnnotations())
	}
	if e := <-b.recorder.Events; e != "Warning Why suspended, and resumed when they have gone: for others" {
		t.Errorf("event %q", e)
	}
	resume := func() bool {
		if err := b.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		return !isSuspended(b.get(t))
	}
	if resume() {
		t.Error("resumed while it has pods")
	}
	if b.pods, b.kept = false, true; resume() {
		t.Error("resumed while it is to be kept")
	}
	if b.kept = false; !resume() || b.ours(j.UID) {
		t.Error("not resumed")
	}
	if u := b.get(t); len(u.GetLabels())+len(u.GetAnnotations()) > 0 {
		t.Errorf("still marked %v %v", u.GetLabels(), u.GetAnnotations())
	}
}

func TestWhatIsNotSuspended(t *testing.T) {
	var refused *Refusal
	queued := newBench(tfjob("llama", map[string]string{kueue.QueueLabel: "q"}), workload("llama", "uid-llama"))
	j, _ := Of(owned("kubeflow.org/v1", "TFJob", "llama"))
	if err := queued.Check(t.Context(), j); !errors.As(err, &refused) || !strings.Contains(err.Error(), "TFJob ns/llama is Kueue's to suspend") {
		t.Errorf("Kueue's: %v", err)
	}
	unknown, _ := Of(owned("kubeflow.org/v1", "Sweep", "llama"))
	if err := queued.Suspend(t.Context(), unknown, Order{}); !errors.As(err, &refused) {
		t.Errorf("of an unknown kind: %v", err)
	}
	// One of the same name, and one that another user has suspended.
	other, _ := Of(owned("kubeflow.org/v1", "TFJob", "llama"))
	other.UID = "other"
	theirs := tfjob("llama", nil)
	if err := unstructured.SetNestedField(theirs.Object, true, "spec", "runPolicy", "suspend"); err != nil {
		t.Fatal(err)
	}
	b := newBench(theirs)
	for _, job := range []Target{other, j} {
		if err := b.Suspend(t.Context(), job, Order{}); err != nil || b.ours(job.UID) || len(b.get(t).GetLabels()) > 0 {
			t.Errorf("%s: %v", job.UID, err)
		}
	}
}

// What cannot be listed is listed when it can, and not indefinitely.
func TestRecall(t *testing.T) {
	mine := tfjob("llama", map[string]string{Label: Value})
	b := newBench(mine)
	j, _ := Of(owned("kubeflow.org/v1", "TFJob", "llama"))
	away, listed, refused := true, 0, 0
	b.jobs.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		resource := action.GetResource()
		switch {
		case resource.Group == "batch":
			refused++
			return true, nil, apierrors.NewForbidden(resource.GroupResource(), "", nil)
		case resource.Version == "v2beta1":
			return true, nil, apierrors.NewNotFound(resource.GroupResource(), "")
		case resource.Resource == "tfjobs":
			if listed++; away {
				return true, nil, apierrors.NewServiceUnavailable("away")
			}
		}
		return false, nil, nil
	})
	if err := b.Recall(t.Context()); err == nil || !strings.Contains(err.Error(), "list tfjobs.kubeflow.org that an earlier scheduler suspended: away") || b.ours(j.UID) {
		t.Fatalf("got %v", err)
	}
	away = false
	for range 2 {
		if err := b.Recall(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if b.clock.Step(recallRefused - 1); b.Recall(t.Context()) != nil || refused != 1 {
		t.Errorf("listed %d times what may not be", refused)
	}
	if b.clock.Step(1); b.Recall(t.Context()) != nil || refused != 2 {
		t.Errorf("listed %d times what may not be, want 2 by now: the right may have been given", refused)
	}
	if !b.ours(j.UID) || listed != 2 {
		t.Errorf("recalled %v, listed %d times, want 2", b.ours(j.UID), listed)
	}
}

// A panic over one job, which its users wrote, does not keep the others suspended; it is tried again after a while.
func TestAPanicOverAJob(t *testing.T) {
	b := newBench(tfjob("first", nil), tfjob("second", nil))
	for _, name := range []string{"first", "second"} {
		j, _ := Of(owned("kubeflow.org/v1", "TFJob", name))
		if err := b.Suspend(t.Context(), j, Order{}); err != nil {
			t.Fatal(err)
		}
	}
	b.pods = false
	panics := 0
	b.Keep = func(job gang.Identity) bool {
		if job.UID == "uid-first" && panics == 0 {
			panics++
			panic("a bug")
		}
		return false
	}
	resume := func() {
		t.Helper()
		if err := b.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	resume()
	if b.ours("uid-second") || !b.ours("uid-first") {
		t.Errorf("the second is kept: %v, the first: %v", b.ours("uid-second"), b.ours("uid-first"))
	}
	b.clock.Step(leftAlone)
	resume()
	if b.ours("uid-first") {
		t.Error("the first is not resumed a while later")
	}
}
