package belowmin

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/enginetest"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/plugins/args"
	"github.com/gangctl/gangctl/scheduler/plugins/planner"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

var (
	noon   = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	keyA   = gang.Key{Dialect: gang.Labels, Namespace: "ns", Name: "a"}
	tfjobs = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"}
)

// fixture is gang a, which needs three members, and its controller at noon.
type fixture struct {
	*Controller
	t        *testing.T
	clock    *clocktesting.FakeClock
	client   *fake.Clientset
	dynamic  *dynamicfake.FakeDynamicClient
	recorder *events.FakeRecorder
	pods     []*corev1.Pod
	required int32
	note     string // the object's annotation
	freed    int
	whole    []string        // what the claims were told
	recorded int             // how often
	below    int             // how often they were told that it is below its minimum
	gone     map[string]bool // nodes
	short    *planner.Shortfall
	// completed is how many required no place any more.
	completed int32
}

func newFixture(t *testing.T, arguments string, jobs ...runtime.Object) *fixture {
	w := &fixture{t: t, clock: clocktesting.NewFakeClock(noon), client: fake.NewClientset(), recorder: events.NewFakeRecorder(100), required: 3}
	w.client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) { // the tracker knows no dry run
		return len(action.(clienttesting.DeleteActionImpl).DeleteOptions.DryRun) > 0, nil, nil
	})
	w.dynamic = jobsClient(jobs...)
	synced := func() bool { return true }
	w.Controller = New(Config{
		Client: w.client, Gangs: w, Objects: w, Claims: w, Recorder: w.recorder, Clock: w.clock, Synced: synced,
		Freed:      func(types.NamespacedName) { w.freed++ },
		NodeExists: w.nodeExists,
		Shortfall: func(types.NamespacedName) (planner.Shortfall, bool) {
			return ptr.Deref(w.short, planner.Shortfall{}), w.short != nil
		},
		Jobs: suspend.New(suspend.Config{Dynamic: w.dynamic, Recorder: w.recorder, Clock: w.clock, Owned: w.owned, Synced: synced}),
	})
	a, err := args.Decode(&runtime.Unknown{Raw: []byte(arguments), ContentType: runtime.ContentTypeJSON}, DefaultArgs())
	if err != nil {
		t.Fatal(err)
	}
	w.profiles["gang-scheduler"] = a
	return w
}

func (w *fixture) nodeExists(name string) bool { return !w.gone[name] }

// Whole, Below and Unplaced implement Claims.
func (w *fixture) Whole(_ types.NamespacedName, members []*corev1.Pod) {
	w.whole = nil
	for _, pod := range members {
		w.whole = append(w.whole, pod.Name)
	}
	w.recorded++
}

func (w *fixture) Below(types.NamespacedName) { w.below++ }

func (w *fixture) Unplaced(types.NamespacedName) { w.whole = nil }

// owned reports whether a job has pods.
func (w *fixture) owned(job suspend.Target) bool {
	return slices.ContainsFunc(w.pods, func(pod *corev1.Pod) bool {
		controller := metav1.GetControllerOf(pod)
		return controller != nil && controller.UID == job.UID
	})
}

func jobsClient(jobs ...runtime.Object) *dynamicfake.FakeDynamicClient {
	client := enginetest.JobsClient(suspend.Resources(), jobs...)
	client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchActionImpl)
		if len(patch.PatchOptions.DryRun) == 0 {
			return false, nil, nil
		}
		u := tfjob(patch.Name, nil) // only tried
		return true, u, unstructured.SetNestedField(u.Object, true, "spec", "runPolicy", "suspend")
	})
	return client
}

// Pods, Required, Completed and Get implement Gangs and Objects.
func (w *fixture) Pods(gang.Key) []*corev1.Pod { return w.pods }

func (w *fixture) Required(gang.Key) (count, priority int32, ok bool) {
	return w.required, 0, w.required > 0
}

func (w *fixture) Completed(gang.Key) int32 { return w.completed }

func (w *fixture) Get(gang.Key) (gangcache.Object, *unstructured.Unstructured, bool) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if w.note != "" {
		u.SetAnnotations(map[string]string{Annotation: w.note})
	}
	return gangcache.Object{Declaration: gang.Declaration{Key: keyA, Kind: schema.GroupVersionKind{Kind: "PodGroup"}}}, u, true
}

// pod adds a member that was created, and bound unless that is negative, so many
// seconds after noon.
func (w *fixture) pod(name string, created, bound int, change ...func(*corev1.Pod)) *corev1.Pod {
	at := func(seconds int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second)) }
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: at(created)},
		Spec:       corev1.PodSpec{SchedulerName: "gang-scheduler"},
	}
	if bound >= 0 {
		pod.Spec.NodeName = "n1"
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(bound)}}
	}
	for _, f := range change {
		f(pod)
	}
	w.pods = append(w.pods, pod)
	if err := w.client.Tracker().Add(pod); err != nil {
		w.t.Fatal(err)
	}
	return pod
}

func phase(p corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = p }
}

func leaving(pod *corev1.Pod) { now := metav1.Now(); pod.DeletionTimestamp = &now }

func ownedBy(apiVersion, kind, name string) func(*corev1.Pod) {
	yes := true
	return func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: &yes}}
	}
}

func tfjob(name string, labels map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"runPolicy": map[string]any{}}}}
	u.SetAPIVersion("kubeflow.org/v1")
	u.SetKind("TFJob")
	u.SetNamespace("ns")
	u.SetName(name)
	u.SetUID(types.UID("uid-" + name))
	u.SetLabels(labels)
	return u
}

// after lets time pass, and the controller look.
func (w *fixture) after(d time.Duration) {
	w.t.Helper()
	w.clock.Step(d)
	if err := w.reconcile(w.t.Context(), keyA); err != nil {
		w.t.Fatal(err)
	}
	if err := w.reconcile(w.t.Context(), gang.Key{}); err != nil {
		w.t.Fatal(err)
	}
}

// did lists what was written, in order, as VERB RESOURCE[/SUBRESOURCE] NAME. What
// was only tried is left out.
func (w *fixture) did() (did []string) {
	for _, fake := range []*clienttesting.Fake{&w.client.Fake, &w.dynamic.Fake} {
		for _, action := range fake.Actions() {
			name := ""
			switch a := action.(type) {
			case clienttesting.CreateAction:
				if eviction, ok := a.GetObject().(*policyv1.Eviction); ok {
					if len(eviction.DeleteOptions.DryRun) > 0 {
						continue
					}
					name = eviction.Name
				}
			case clienttesting.PatchActionImpl:
				if len(a.PatchOptions.DryRun) > 0 {
					continue
				}
				name = a.GetName() + " " + string(a.GetPatch())
			case clienttesting.DeleteActionImpl:
				if len(a.DeleteOptions.DryRun) > 0 {
					continue
				}
				name = a.Name
			default:
				continue
			}
			did = append(did, strings.TrimSuffix(action.GetVerb()+" "+action.GetResource().Resource+"/"+action.GetSubresource(), "/")+" "+name)
		}
		fake.ClearActions()
	}
	return did
}

// events returns the events since its last call.
func (w *fixture) events() (got []string) {
	for {
		select {
		case e := <-w.recorder.Events:
			got = append(got, e)
		default:
			return got
		}
	}
}

func (w *fixture) wantEvents(texts ...string) {
	w.t.Helper()
	got := w.events()
	ok := len(got) == len(texts)
	for i := range min(len(got), len(texts)) {
		ok = ok && strings.Contains(got[i], texts[i])
	}
	if !ok {
		w.t.Errorf("events %q, want %q", got, texts)
	}
}

func (w *fixture) wantDid(texts ...string) {
	w.t.Helper()
	did := w.did()
	ok := len(did) == len(texts)
	for i := range min(len(did), len(texts)) {
		ok = ok && strings.HasPrefix(did[i], texts[i])
	}
	if !ok {
		w.t.Errorf("did %q, want %q", did, texts)
	}
}
