package belowmin

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

func TestAJobIsSuspendedAndResumed(t *testing.T) {
	for _, never := range []bool{true, false} {
		w := newFixture(t, `{"grace":"10s","startGrace":"10s","belowMin":"evict"}`, tfjob("llama", nil))
		w.pod("a-0", 0, 1, ownedBy("kubeflow.org/v1", "TFJob", "llama"))
		w.pod("a-1", 0, 1, ownedBy("kubeflow.org/v1", "TFJob", "llama"))
		if never {
			w.pod("a-2", 0, -1, ownedBy("kubeflow.org/v1", "TFJob", "llama"))
		}
		w.after(0)
		w.after(10 * time.Second)
		w.wantDid(`patch tfjobs llama {"metadata":{"labels":{"gangctl.dev/suspended-by":"gang-scheduler"},"uid":"uid-llama"},"spec":{"runPolicy":{"suspend":true}}}`)
		leaving(w.pods[0])
		w.after(time.Second)
		w.pods = w.pods[:1] // the last one terminates
		w.after(time.Second)
		w.wantDid()
		w.pods = nil
		w.after(time.Second)
		w.wantDid(`patch tfjobs llama {"metadata":{"labels":{"gangctl.dev/suspended-by":null},"uid":"uid-llama"},"spec":{"runPolicy":{"suspend":false}}}`)
		first := "GangEvicted 2 of 3"
		if never {
			first = "GangRolledBack 2 of 3"
		}
		w.wantEvents(first, "GangEvicted suspended, and resumed when its pods are gone", "GangResumed its pods are gone")
		w.after(time.Minute)
		w.wantDid()
	}
}

// The scheduler that suspended a job ended before it could resume it.
func TestTheNextSchedulerResumes(t *testing.T) {
	mine := tfjob("mine", map[string]string{suspend.Label: suspend.Value})
	_ = unstructured.SetNestedField(mine.Object, true, "spec", "runPolicy", "suspend")
	theirs := tfjob("theirs", nil)
	_ = unstructured.SetNestedField(theirs.Object, true, "spec", "runPolicy", "suspend")
	w := newFixture(t, short, mine, theirs)
	w.pod("left", 0, 1, ownedBy("kubeflow.org/v1", "TFJob", "mine"))
	away := true
	w.dynamic.PrependReactor("list", "tfjobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return away, nil, apierrors.NewServiceUnavailable("away")
	})
	if err := w.Jobs.Recall(t.Context()); err == nil {
		t.Fatal("the server is away, and no error reports it")
	}
	away = false // whoever looks after suspended jobs retries
	w.after(time.Second)
	w.wantDid()
	w.pods = nil
	w.after(time.Second)
	w.wantDid("patch tfjobs mine")
	u, err := w.dynamic.Resource(tfjobs).Namespace("ns").Get(t.Context(), "mine", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if suspended, _, _ := unstructured.NestedBool(u.Object, "spec", "runPolicy", "suspend"); suspended || u.GetLabels()[suspend.Label] != "" {
		t.Errorf("it is still suspended: %v", u.Object)
	}
}

var errUnknownKind = errors.New("unknown kind")

func TestWhenPlacesCannotBeTaken(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		job  *unstructured.Unstructured
		err  error // of every write but that of a pod's status
		want string
	}{
		"without the right":               {nil, apierrors.NewForbidden(pods, "a-0", nil), "install/scheduler-policy-rbac.yaml"},
		"against a budget":                {nil, apierrors.NewTooManyRequests("the budget allows none", 1), "the budget allows none"},
		"a job of Kueue's":                {tfjob("llama", map[string]string{kueue.QueueLabel: "q"}), nil, "TFJob ns/llama is Kueue's to suspend"},
		"a kind of job that is not known": {tfjob("llama", nil), errUnknownKind, "Sweep ns/llama is of a kind that is not known to give its pods back"},
		"a job without right":             {tfjob("llama", nil), apierrors.NewForbidden(tfjobs.GroupResource(), "llama", nil), "suspend TFJob ns/llama"},
	} {
		t.Run(name, func(t *testing.T) {
			jobs := []runtime.Object{}
			owned := func(*corev1.Pod) {}
			if c.job != nil {
				jobs, owned = append(jobs, c.job), ownedBy("kubeflow.org/v1", "TFJob", "llama")
			}
			if errors.Is(c.err, errUnknownKind) {
				owned = ownedBy("kubeflow.org/v1", "Sweep", "llama")
			}
			w := newFixture(t, `{"grace":"10s","belowMin":"evict"}`, jobs...)
			calls := 0
			refuse := func(action clienttesting.Action) (bool, runtime.Object, error) {
				calls++
				return c.err != nil && action.GetSubresource() != "status", nil, c.err
			}
			w.client.PrependReactor("create", "pods", refuse)
			w.dynamic.PrependReactor("patch", "*", refuse)
			w.pod("a-0", 0, 1, owned)
			w.pod("a-1", 0, 1, owned)
			w.after(0)
			w.after(10 * time.Second)
			w.wantEvents("GangEvicted", c.want)
			if w.isEvicting(groupA) {
				t.Error("no member may join a gang that stays")
			}
			if did := w.did(); len(did) > 0 {
				t.Errorf("did %q; want nothing taken, and no condition set, if not all can be", did)
			}
			calls = 0
			w.after(15 * time.Second) // the grace has doubled
			if calls > 0 {
				t.Error("tried again after 15s")
			}
			w.after(5 * time.Second)
			if c.err != nil && !errors.Is(c.err, errUnknownKind) && calls == 0 {
				t.Error("did not try again after 20s")
			}
		})
	}
}

// Pods that would be deleted are tried first, as those that would be evicted: of a gang of which one cannot be deleted all stay. Any answer
// that refuses counts, and is reported.
func TestOfPodsThatCannotBeDeletedAllStay(t *testing.T) {
	for name, err := range map[string]error{
		"denied by an admission webhook": apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a-1", errors.New("it is protected")),
		"invalid":                        apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a-1", nil),
		"a bad request":                  apierrors.NewBadRequest("it is protected"),
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, short)
			w.client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				return action.(clienttesting.DeleteAction).GetName() == "a-1", nil, err
			})
			w.pod("a-0", 0, 1)
			w.pod("a-1", 0, 1)
			w.pod("a-2", 0, -1)
			w.after(0)
			w.after(10 * time.Second)
			w.wantDid()
			w.wantEvents("GangRolledBack", "its places cannot be taken: delete pod ns/a-1: ")
			if w.isEvicting(groupA) {
				t.Error("no member may join a gang that stays")
			}
		})
	}
}

// A webhook that takes no dry runs refuses nothing: what it answers is seen when the places are taken.
func TestAWebhookThatTakesNoDryRuns(t *testing.T) {
	untried := apierrors.NewBadRequest(`admission webhook "audit.example.com" does not support dry run`)
	w := newFixture(t, `{"grace":"10s","belowMin":"evict"}`, tfjob("llama", nil))
	w.dynamic.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return len(action.(clienttesting.PatchActionImpl).PatchOptions.DryRun) > 0, nil, untried
	})
	w.client.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return len(action.(clienttesting.PatchActionImpl).PatchOptions.DryRun) > 0, nil, untried
	})
	w.client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		eviction, ok := action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction)
		return ok && len(eviction.DeleteOptions.DryRun) > 0, nil, untried
	})
	w.pod("a-0", 0, 1, ownedBy("kubeflow.org/v1", "TFJob", "llama"))
	w.pod("a-1", 0, 1)
	w.after(0)
	w.after(10 * time.Second)
	w.wantDid("patch pods/status a-1", "create pods/eviction a-1", "patch tfjobs llama")
}

// Another pod has the name of a member by now, which the informer does not know yet. The others are evicted all the same.
func TestAMemberThatWasReplaced(t *testing.T) {
	w := newFixture(t, `{"grace":"10s","belowMin":"evict"}`)
	w.client.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		uid := field.Invalid(field.NewPath("metadata", "uid"), "a-0", "field is immutable")
		return action.(clienttesting.PatchAction).GetName() == "a-0", nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a-0", field.ErrorList{uid})
	})
	w.pod("a-0", 0, 1)
	w.pod("a-1", 0, 1)
	w.after(0)
	w.after(10 * time.Second)
	w.wantDid("patch pods/status a-0", "patch pods/status a-1", "create pods/eviction a-1")
	w.wantEvents("GangEvicted")
}

// A gang that was never whole has the name of one that was, and came without a
// moment in between.
func TestAGangOfTheSameName(t *testing.T) {
	w := newFixture(t, short)
	for _, name := range []string{"old-0", "old-1", "old-2"} {
		w.pod(name, 0, 1)
	}
	w.after(0)
	w.pods = nil
	w.pod("a-0", 5, 6)
	w.pod("a-1", 5, 6)
	w.pod("a-2", 5, -1)
	w.after(0)
	w.after(10 * time.Second)
	w.wantEvents("GangRolledBack")
}
