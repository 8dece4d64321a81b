package preemption

import (
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gangctl/gangctl/internal/enginetest"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

func ownedBy(name string) func(*corev1.Pod) { return ownedByA("kubeflow.org/v1", "TFJob", name) }

func ownedByA(apiVersion, kind, name string) func(*corev1.Pod) {
	yes := true
	return func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: &yes}}
	}
}

// losesPodByPod has the pods of batch Job j, a gang of two, go one by one.
func (r *rig) losesPodByPod() {
	r.t.Helper()
	r.Create(enginetest.Node("n1", 2))
	r.WaitPlaced(r.members("l", 2, 2, 0, ownedByA("batch/v1", "Job", "j"))...)
	r.WaitPlaced(r.members("a", 1, 1, 100)...)
	r.waitEvicted("l-0", "l-1")
}

func tfjob(name string, labels map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"runPolicy": map[string]any{}}}}
	u.SetAPIVersion("kubeflow.org/v1")
	u.SetKind("TFJob")
	u.SetNamespace(enginetest.Namespace)
	u.SetName(name)
	u.SetUID(types.UID("uid-" + name))
	u.SetLabels(labels)
	return u
}

func (r *rig) job(name string) *unstructured.Unstructured {
	r.t.Helper()
	u, err := r.jobs.Resource(schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"}).Namespace(enginetest.Namespace).Get(r.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return u
}

func isSuspended(u *unstructured.Unstructured) bool {
	suspended, _, _ := unstructured.NestedBool(u.Object, "spec", "runPolicy", "suspend")
	return suspended
}

// The Training Operator fails a job of which a pod is deleted. So the job is
// suspended, as a whole even if it could do without some, and resumed when its
// pods are gone and the preemptor has its places.
func TestAJobIsSuspended(t *testing.T) {
	r := start(t, "", tfjob("llama", nil))
	r.Create(enginetest.Node("n1", 4))
	r.WaitPlaced(r.members("l", 4, 2, 0, ownedBy("llama"))...)
	a := r.members("a", 1, 1, 100)
	r.Wait("the job is suspended", func() bool { return isSuspended(r.job("llama")) })
	if u := r.job("llama"); u.GetLabels()[suspend.Label] != suspend.Value || u.GetAnnotations()[suspend.BecauseAnnotation] != "preempted by gang ns/a of priority 100" {
		t.Errorf("labels %v, annotations %v", u.GetLabels(), u.GetAnnotations())
	}
	if err := r.Preemptor.jobs.Resume(t.Context()); err != nil || !isSuspended(r.job("llama")) {
		t.Errorf("resumed before its pods are gone: %v", err)
	}
	r.leave("l-0", "l-1", "l-2", "l-3") // as the operator does
	r.WaitPlaced(a...)
	r.Wait("the job is resumed", func() bool {
		if err := r.Preemptor.jobs.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		return !isSuspended(r.job("llama"))
	})
	if got := r.evicted(); got != "" {
		t.Errorf("deleted %s", got)
	}
	if u := r.job("llama"); len(u.GetLabels())+len(u.GetAnnotations()) > 0 {
		t.Errorf("it is still marked: %v %v", u.GetLabels(), u.GetAnnotations())
	}
}

// Two preemptors count on one job to go. It turns out that it cannot be suspended: the second has others evicted, and does not wait for the job.
func TestAJobThatAnotherCountsOnStays(t *testing.T) {
	r := startHeld(t, func(*enginetest.Cluster) {}, "", nil, tfjob("llama", nil))
	r.jobs.PrependReactor("patch", "tfjobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "kubeflow.org", Resource: "tfjobs"}, "llama", nil)
	})
	r.Create(enginetest.Node("n1", 12), enginetest.Node("n2", 4))
	r.WaitPlaced(r.members("l", 1, 1, 0, ownedBy("llama"), enginetest.CPUs(12))...)
	r.WaitPlaced(r.singles(1, enginetest.CPUs(4))...)
	r.members("a", 1, 1, 100, enginetest.CPUs(8))
	r.Wait("the job is to go", func() bool {
		return len(r.Preemptor.claims.Nodes(types.NamespacedName{Namespace: enginetest.Namespace, Name: "labels:a"})) > 0
	})
	b := r.members("b", 1, 1, 100, enginetest.CPUs(4))
	r.Wait("it is waited for", func() bool {
		r.Preemptor.mu.Lock()
		defer r.Preemptor.mu.Unlock()
		return len(r.awaiting) == 1
	})
	r.run()
	r.WaitPlaced(b...)
	r.waitEvicted("s-0")
}

// While the API is queried whether a job can be suspended, its preemptor may go: then the job stays.
func TestAJobIsNotSuspendedWithoutAPreemptor(t *testing.T) {
	r := start(t, "", tfjob("llama", nil))
	requested, answer := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.jobs.PrependReactor("patch", "tfjobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if len(action.(clienttesting.PatchActionImpl).PatchOptions.DryRun) > 0 {
			once.Do(func() { close(requested); <-answer })
		}
		return false, nil, nil
	})
	r.Create(enginetest.Node("n1", 2))
	r.WaitPlaced(r.members("l", 2, 2, 0, ownedBy("llama"))...)
	r.Create(enginetest.Pod("p", "", enginetest.Priority(100)))
	<-requested
	p, err := r.Client.CoreV1().Pods(enginetest.Namespace).Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.Delete("p")
	r.Wait("the engine knows", func() bool { return r.engine.Pod(p) == nil })
	close(answer)
	r.Wait("the reservation ends", func() bool {
		r.Preemptor.mu.Lock()
		defer r.Preemptor.mu.Unlock()
		return len(r.reservations) == 0
	})
	r.quiet(500 * time.Millisecond)
	if isSuspended(r.job("llama")) {
		t.Error("it was suspended")
	}
}

// If a job cannot be suspended no other pod was evicted for it, and others are chosen.
func TestAJobThatCannotBeSuspendedIsLeftAlone(t *testing.T) {
	r := start(t, "", tfjob("llama", map[string]string{kueue.QueueLabel: "q"}))
	r.Create(enginetest.Node("n1", 4))
	r.WaitPlaced(r.members("l", 2, 2, 0, ownedBy("llama"))...)
	r.WaitPlaced(r.singles(2, enginetest.Priority(50))...)
	r.WaitPlaced(r.members("a", 2, 2, 100)...)
	if got := r.evicted(); got != "s-0 s-1" || isSuspended(r.job("llama")) {
		t.Errorf("evicted %q", got)
	}
}

// Pods of such a job are one unit even if they are in no gang.
func TestAJobWithoutAGangIsSuspended(t *testing.T) {
	r := start(t, "", tfjob("llama", nil))
	r.Create(enginetest.Node("n1", 2))
	r.WaitPlaced(r.singles(2, ownedBy("llama"))...)
	r.Create(enginetest.Pod("p", "", enginetest.Priority(100)))
	r.waitMessage("p", "preempts TFJob ns/llama (2 pods)")
	r.Wait("the job is suspended", func() bool { return isSuspended(r.job("llama")) })
	r.leave("s-0", "s-1")
	r.WaitPlaced("p")
	if got := r.evicted(); got != "" {
		t.Errorf("deleted %s", got)
	}
}

// A gang of a batch Job is deleted where the right to suspend jobs is not given:
// its controller creates pods again.
func TestABatchJobWithoutTheRight(t *testing.T) {
	r := start(t, "")
	r.jobs.PrependReactor("get", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "j", nil)
	})
	r.losesPodByPod()
}

// A controller that is not known may resume its Job at once, so the pods are
// deleted, and created again to wait.
func TestAJobOfAController(t *testing.T) {
	yes := true
	job := tfjob("j", nil)
	job.SetAPIVersion("batch/v1")
	job.SetKind("Job")
	job.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Sweep", Name: "s", UID: "uid-s", Controller: &yes}})
	set := tfjob("s", nil)
	set.SetAPIVersion("example.com/v1")
	set.SetKind("Sweep")
	r := start(t, "", set, job)
	r.losesPodByPod()
}

// The pods that a suspended job leaves in time are deleted: a user who writes into pods that they are those of a job, which does not know them, does
// not keep their places, and nobody else has to go for them. That the job was suspended before is no help, either.
func TestASuspendedJobThatDoesNotGo(t *testing.T) {
	for name, before := range map[string]bool{"by us": false, "by its user": true} {
		t.Run(name, func(t *testing.T) {
			job := tfjob("llama", nil)
			if err := unstructured.SetNestedField(job.Object, before, "spec", "runPolicy", "suspend"); err != nil {
				t.Fatal(err)
			}
			r := start(t, `{"terminationTimeout":"1s"}`, job)
			r.Create(enginetest.Node("n1", 4))
			r.WaitPlaced(r.members("l", 2, 2, 0, ownedBy("llama"))...)
			r.WaitPlaced(r.singles(2, enginetest.Priority(50))...)
			a := r.members("a", 2, 2, 100)
			r.Wait("the job is suspended", func() bool { return isSuspended(r.job("llama")) })
			r.WaitPlaced(a...)
			r.waitEvicted("l-0", "l-1")
		})
	}
}

// A user may write into his pods the uid of a job of another namespace. They are no part of it: they have their own priority, and the job is
// suspended as if they were not there.
func TestPodsThatNameAJobOfAnotherNamespace(t *testing.T) {
	for name, tt := range map[string]struct {
		priority  int32
		members   int
		suspended bool
	}{
		"have their own priority":     {40, 2, false},
		"go together with a real one": {100, 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, "", tfjob("llama", nil))
			r.Create(enginetest.Node("n1", 4))
			r.WaitPlaced(r.singles(2, enginetest.Priority(50), ownedBy("llama"))...)
			for _, name := range []string{"e-0", "e-1"} {
				r.Create(enginetest.Pod(name, "", ownedBy("llama"), enginetest.On("n1"), func(pod *corev1.Pod) { pod.Namespace = "evil" }))
			}
			a := r.members("a", tt.members, tt.members, tt.priority)
			if tt.suspended {
				r.Wait("the job is suspended", func() bool { return isSuspended(r.job("llama")) })
				r.waitEvicted("e-0", "e-1")
				r.leave("s-0", "s-1")
			}
			r.WaitPlaced(a...)
			r.waitEvicted("e-0", "e-1")
			if got := isSuspended(r.job("llama")); got != tt.suspended && !tt.suspended {
				t.Error("the job of another is suspended")
			}
		})
	}
}

// Of a kind in the Training Operator's group that we do not read, nothing shows how many pods it needs, nor whether there is such a job.
// Its pods go all at once, and never some of them; and a reference to it, which any user may write, makes no pod immune.
func TestJobsOfKindsThatAreNotRead(t *testing.T) {
	for _, kind := range []string{"Sweep", "Nothing"} {
		for name, grouped := range map[string]bool{"in a gang that can do without some": true, "in no gang": false} {
			t.Run(kind+" "+name, func(t *testing.T) {
				r := start(t, "")
				r.Create(enginetest.Node("n1", 3))
				owned := ownedByA("kubeflow.org/v1", kind, "llama")
				var all []string
				if grouped {
					all = r.members("l", 3, 1, 0, owned)
				} else {
					all = r.singles(3, owned)
				}
				r.WaitPlaced(all...)
				r.WaitPlaced(r.members("a", 1, 1, 100)...)
				r.waitEvicted(all...)
			})
		}
	}
}

// A panic over what a tenant wrote into a job ends that preemption, and not the process.
func TestAPanicOverAJobEndsOnePreemption(t *testing.T) {
	r := start(t, "", tfjob("llama", nil), tfjob("alpaca", nil))
	requested := make(chan struct{}, 100)
	r.jobs.PrependReactor("patch", "tfjobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.(clienttesting.PatchActionImpl).Name == "llama" {
			requested <- struct{}{}
			panic("its spec is a list")
		}
		return false, nil, nil
	})
	r.Create(enginetest.Node("n1", 2))
	r.WaitPlaced(r.members("l", 2, 2, 0, ownedBy("llama"))...)
	r.members("a", 2, 2, 100)
	<-requested
	r.Create(enginetest.Node("n2", 4))
	on := func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n2"} }
	r.WaitPlaced(r.members("p", 4, 4, 100, ownedBy("alpaca"), on)...)
	r.members("b", 4, 4, 1000, on)
	r.Wait("another job is suspended", func() bool { return isSuspended(r.job("alpaca")) })
}
