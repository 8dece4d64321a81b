package belowmin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

const evicting = `{"grace":"10s","belowMin":"evict"}`

func isReady(pod *corev1.Pod) {
	pod.Labels = map[string]string{"app": "a"}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
}

// The budget allows some of the evictions that it takes, and each when it is requested
// about that one alone.
func TestABudgetForSomeOfTheMembers(t *testing.T) {
	for allowed, want := range map[int32]string{1: "its places cannot be taken: PodDisruptionBudget ns/b allows 1 of 2 evictions", 2: ""} {
		w := newFixture(t, evicting)
		if err := w.client.Tracker().Add(&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b"},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}},
			Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
		}); err != nil {
			t.Fatal(err)
		}
		w.pod("a-0", 0, 1, isReady)
		w.pod("a-1", 0, 1, isReady)
		w.after(0)
		w.after(10 * time.Second)
		if want == "" {
			w.wantDid("patch pods/status a-0", "create pods/eviction a-0", "patch pods/status a-1", "create pods/eviction a-1")
			continue
		}
		w.wantDid()
		w.wantEvents("GangEvicted", want)
		if w.isEvicting(groupA) {
			t.Error("no member may join a gang that stays")
		}
	}
}

// What is refused after some were taken is tried until it is done.
func TestWhatHasBegunIsFinished(t *testing.T) {
	w := newFixture(t, evicting)
	refusing, calls := true, 0
	w.client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		eviction := action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction)
		if eviction.Name != "a-1" {
			return false, nil, nil
		}
		if calls++; refusing && calls > 1 { // before the first eviction it would be allowed
			return true, nil, apierrors.NewTooManyRequests("the budget allows none any more", 1)
		}
		return false, nil, nil
	})
	w.pod("a-0", 0, 1)
	w.pod("a-1", 0, 1)
	w.after(0)
	w.clock.Step(10 * time.Second)
	for range 2 {
		if err := w.reconcile(t.Context(), keyA); err == nil || !strings.Contains(err.Error(), "the budget allows none any more") {
			t.Errorf("got %v; want it tried again", err)
		}
		leaving(w.pods[0])
	}
	w.wantEvents("GangEvicted", "some of its places are taken, and others cannot be yet") // once
	if !w.isEvicting(groupA) {
		t.Error("a member may join those that leave")
	}
	refusing = false
	w.did()
	w.after(time.Second)
	w.wantDid("patch pods/status a-1", "create pods/eviction a-1")
}

// Of several jobs a later one cannot be suspended. So the first is not, either.
func TestAllJobsOfAGangAreCheckedFirst(t *testing.T) {
	w := newFixture(t, evicting, tfjob("first", nil), tfjob("second", map[string]string{kueue.QueueLabel: "q"}))
	w.pod("a-0", 0, 1, ownedBy("kubeflow.org/v1", "TFJob", "first"))
	w.pod("a-1", 0, 1, ownedBy("kubeflow.org/v1", "TFJob", "second"))
	w.after(0)
	w.after(10 * time.Second)
	w.wantDid()
	w.wantEvents("GangEvicted", "TFJob ns/second is Kueue's to suspend")
}

// A controller that is not known may resume its Job at once, so its pods go one by one.
func TestAJobOfAController(t *testing.T) {
	yes := true
	job := tfjob("j", nil)
	job.SetAPIVersion("batch/v1")
	job.SetKind("Job")
	job.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Sweep", Name: "s", UID: "uid-s", Controller: &yes}})
	set := tfjob("s", nil)
	set.SetAPIVersion("example.com/v1")
	set.SetKind("Sweep")
	w := newFixture(t, evicting, set, job, tfjob("llama", nil))
	w.pod("a-0", 0, 1, ownedBy("batch/v1", "Job", "j"))
	w.pod("a-1", 0, 1, ownedBy("kubeflow.org/v1", "TFJob", "llama"))
	w.after(0)
	w.after(10 * time.Second)
	w.wantDid("patch pods/status a-0", "create pods/eviction a-0", "patch tfjobs llama")
}

// However many members a job has, it is read as often.
func TestAJobIsCheckedOnce(t *testing.T) {
	reads := func(members int) (n int) {
		w := newFixture(t, evicting, tfjob("llama", nil))
		w.required = 100
		for i := range members {
			w.pod(fmt.Sprintf("a-%d", i), 0, 1, ownedBy("kubeflow.org/v1", "TFJob", "llama"))
		}
		w.after(0)
		w.after(10 * time.Second)
		for _, action := range w.dynamic.Actions() {
			if action.GetVerb() == "get" {
				n++
			}
		}
		return n
	}
	if one, ten := reads(1), reads(10); one == 0 || one != ten {
		t.Errorf("read %d times with one member, %d times with ten", one, ten)
	}
}
