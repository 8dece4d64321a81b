package replacement

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/enginetest"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/scheduler/plugins/args"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

var groupA = types.NamespacedName{Namespace: enginetest.Namespace, Name: "labels:a"}

// fixture is a tracker at noon, with gang a that needs three members, on nodes of
// four CPUs each.
type fixture struct {
	*Tracker
	t      *testing.T
	clock  *clocktesting.FakeClock
	cycle  *cycle
	parked *unparked
	store  cache.Indexer
	nodes  []*corev1.Node
	pods   map[string]*corev1.Pod
}

// cycle is an engine of which only the snapshot and the pods are looked at.
type cycle struct {
	snapshot fwk.SharedLister
	pods     corelisters.PodLister
}

func (c *cycle) Snapshot() fwk.SharedLister                   { return c.snapshot }
func (c *cycle) Pods() corelisters.PodLister                  { return c.pods }
func (c *cycle) Activate(map[string]*corev1.Pod)              {}
func (c *cycle) Pod(pod *corev1.Pod) *corev1.Pod              { return pod }
func (c *cycle) Lacking(types.NamespacedName) int             { return 0 }
func (c *cycle) Scheduled(types.NamespacedName) []*corev1.Pod { return nil }

// unparked counts how often less is claimed.
type unparked struct{ released int }

func (u *unparked) Released() { u.released++ }

func newTracker(gangs Gangs, e *cycle, parked *unparked, c clock.WithDelayedExecution) *Tracker {
	return emptyTracker(gangs, e, claims.NewLedger(e, parked, c, audience.Hidden), c)
}

func newFixture(t *testing.T) *fixture {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.GenericWorkload, true)
	w := &fixture{
		t: t, clock: clocktesting.NewFakeClock(noon), cycle: &cycle{}, parked: &unparked{},
		store: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
		nodes: []*corev1.Node{enginetest.Node("n1", 4), enginetest.Node("n2", 4)}, pods: map[string]*corev1.Pod{},
	}
	w.Tracker = newTracker(gangA{required: 3, priority: 7}, w.cycle, w.parked, w.clock)
	w.look() // nothing was there when it began
	return w
}

// gangA is the gang of all pods whose name begins with its name.
type gangA struct{ required, priority int32 }

func (gangA) GroupOf(p *corev1.Pod) (types.NamespacedName, bool) {
	return groupA, strings.HasPrefix(p.Name, "a-")
}

func (g gangA) Required(types.NamespacedName) (count, priority int32, ok bool) {
	return g.required, g.priority, true
}

// look is what the next cycle claims, by node.
func (w *fixture) look() map[string][]claims.Claim {
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: groupA.Namespace, Name: groupA.Name}}
	var pods []*corev1.Pod
	for _, pod := range w.pods {
		pods = append(pods, pod)
	}
	w.cycle.snapshot = internalcache.NewTestSnapshotWithPodGroups(pods, w.nodes, []*schedulingv1beta1.PodGroup{group})
	w.cycle.pods = corelisters.NewPodLister(w.store)
	w.refresh()
	byNode := map[string][]claims.Claim{}
	for _, c := range w.claims.For(groupA) {
		byNode[c.Node] = append(byNode[c.Node], c)
	}
	return byNode
}

// run places a member, as an informer reports it.
func (w *fixture) run(name, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := enginetest.Pod(name, "a", append(change, enginetest.On(node))...)
	w.pods[name] = pod
	_ = w.store.Add(pod)
	w.see(pod)
	return pod
}

// die removes a pod from the cluster.
func (w *fixture) die(name string) {
	pod := w.pods[name]
	_ = w.store.Delete(pod)
	w.gone(pod)
	delete(w.pods, name)
}

// want compares the claims with "NODE for MEMBER until TIME", by node.
func (w *fixture) want(want ...string) {
	w.t.Helper()
	var got []string
	claimed := w.look()
	for _, node := range []string{"n1", "n2"} {
		for _, c := range claimed[node] {
			got = append(got, node+" for "+c.Pod.Name+" until "+c.Until.Format("15:04"))
		}
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		w.t.Errorf("got %q, want %q", got, want)
	}
}

func TestAClaimIsSeenInTheSnapshot(t *testing.T) {
	w := newFixture(t)
	w.run("a-0", "n1")
	w.run("a-1", "n1")
	w.run("a-2", "n2")
	w.want()
	w.die("a-2")
	w.want("n2 for a-2 until 12:02")
	if got := w.look()["n2"][0].Priority; got != 7 {
		t.Errorf("priority %d, want the gang's", got)
	}
	w.clock.Step(2 * time.Minute)
	w.want()
	if len(w.loose) > 0 || len(w.slots) != 2 {
		t.Errorf("%d slots are left, want those of the living", len(w.slots))
	}
}

func TestAClaimsTimeCountsFromTheDeath(t *testing.T) {
	w := newFixture(t)
	w.run("a-0", "n1")
	w.run("a-1", "n1")
	w.run("a-2", "n2")
	w.die("a-2")
	w.clock.Step(time.Minute) // and no pod comes for a minute
	w.want("n2 for a-2 until 12:02")
	w.clock.Step(time.Minute)
	w.want()
}

// The ledger hears of a death before the engine does.
func TestAPodThatTheSnapshotStillHasGetsNoClaim(t *testing.T) {
	w := newFixture(t)
	w.run("a-0", "n1")
	w.run("a-1", "n1")
	pod := w.run("a-2", "n2")
	_ = w.store.Delete(pod)
	w.gone(pod)
	w.want()
	delete(w.pods, "a-2")
	w.want("n2 for a-2 until 12:02")
}

// A pod that was bound a moment ago may not be in the snapshot.
func TestABoundPodThatTheSnapshotLacksIsAlive(t *testing.T) {
	w := newFixture(t)
	w.run("a-0", "n1")
	w.run("a-1", "n1")
	pod := w.run("a-2", "n2")
	delete(w.pods, "a-2")
	w.stale["n2"] = true
	w.want()
	w.pods["a-2"] = pod
	w.want()
}

func TestReplacements(t *testing.T) {
	w := newFixture(t)
	w.run("a-0", "n1")
	w.run("a-1", "n1", enginetest.CPUs(2))
	w.run("a-2", "n2")
	w.die("a-1")
	w.die("a-2")
	w.want("n1 for a-1 until 12:02", "n2 for a-2 until 12:02")
	// By name, though it is of another size and on another node.
	w.reserve(groupA, enginetest.Pod("a-1", "a", enginetest.On("n2"), func(p *corev1.Pod) { p.UID = "second" }), "n2")
	w.pods["a-1"] = enginetest.Pod("a-1", "a", enginetest.On("n2"), func(p *corev1.Pod) { p.UID = "second" })
	w.want("n2 for a-2 until 12:02")
	// By size.
	w.run("a-9", "n1")
	w.reserve(groupA, w.pods["a-9"], "n1")
	w.want()
	if len(w.loose) > 0 {
		t.Error("a slot is left that was filled")
	}
}

func TestALeavingMemberKeepsItsPlaceItself(t *testing.T) {
	w := newFixture(t)
	w.run("a-0", "n1")
	w.run("a-1", "n1")
	pod := w.run("a-2", "n2").DeepCopy()
	pod.DeletionTimestamp = ptr.To(metav1.NewTime(noon))
	pod.Spec.SchedulingGroup = nil // as the engine sees it
	w.pods["a-2"] = pod
	_ = w.store.Update(pod)
	w.see(pod)
	w.want()
	w.die("a-2")
	w.want("n2 for a-2 until 12:02")

	// One whose replacement did not wait for that leaves nothing behind.
	w.run("a-3", "n2")
	w.reserve(groupA, w.pods["a-3"], "n2")
	w.want()
	leaving := w.pods["a-3"].DeepCopy()
	leaving.DeletionTimestamp = pod.DeletionTimestamp
	w.see(leaving)
	w.run("a-4", "n1")
	w.reserve(groupA, w.pods["a-4"], "n1")
	w.die("a-3")
	w.want()
	if len(w.loose) > 0 {
		t.Error("a slot is left that was filled")
	}
}

// A member that can never be bound does not keep a place indefinitely.
func TestAFailingBindingIsClaimedForOnce(t *testing.T) {
	w := newFixture(t)
	w.run("a-0", "n1")
	w.run("a-1", "n1")
	pod := enginetest.Pod("a-2", "a")
	_ = w.store.Add(pod)
	for range 3 { // it is tried again and again
		w.reserve(groupA, pod, "n2")
		w.unreserve(pod)
		w.want("n2 for a-2 until 12:02")
		w.clock.Step(30 * time.Second)
	}
	w.clock.Step(30 * time.Second)
	w.want()
	w.reserve(groupA, pod, "n2")
	w.unreserve(pod)
	w.want()
	w.run("a-2", "n2") // at last
	w.die("a-2")
	w.want("n2 for a-2 until 12:04")
	if len(w.failing) != 0 {
		t.Error("it is still counted as failing")
	}
}

func TestADeletedNodeHasNoClaims(t *testing.T) {
	w := newFixture(t)
	w.run("a-0", "n1")
	w.run("a-1", "n1")
	w.run("a-2", "n2")
	w.nodes = w.nodes[:1]
	w.die("a-2")
	w.want()
	w.clock.Step(2 * time.Minute)
	if len(w.loose) > 0 {
		t.Error("its slot is still there")
	}
}

func TestMessageOfAClaim(t *testing.T) {
	w := newFixture(t)
	w.run("a-0", "n1")
	w.run("a-1", "n2")
	w.run("a-2", "n2")
	w.die("a-2")
	w.die("a-1")
	var whys []string
	for _, c := range w.look()["n2"] {
		whys = append(whys, c.Why.For(audience.Reader{}))
		if got, want := c.Why.For(audience.Hidden.Reader("other")), "held for the replacement of a pod of another namespace (1 cpu, priority 7) until 12:02:00 UTC"; got != want {
			t.Errorf("others read %q, want %q", got, want)
		}
	}
	slices.Sort(whys)
	if got, want := strings.Join(whys, ", "), "held for the replacement of ns/a-1 (gang ns/a) until 12:02:00 UTC, held for the replacement of ns/a-2 (gang ns/a) until 12:02:00 UTC"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestArgs(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                         "",
		`{"holdTTL":"5s"}`:           "",
		`{"holdTTL":"0s"}`:           "args.holdTTL: 0s is not a positive duration",
		`{"holdTTL":"soon"}`:         "soon",
		`{"holdTTTL":"5s"}`:          "holdTTTL",
		`{"holdTTL":"-1m0s"}`:        "args.holdTTL: -1m0s is not a positive duration",
		`{"maxPerNamespace":1}`:      "",
		`{"maxPerNamespace":0}`:      "args.maxPerNamespace: 0 is not a positive number (to hold nothing, disable plugin GangReplacement)",
		`{"maxPerNamespace":-1}`:     "args.maxPerNamespace: -1 is not a positive number",
		`{"maxPerNamespace":"many"}`: "maxPerNamespace",
	} {
		_, err := args.Decode(&runtime.Unknown{Raw: []byte(text), ContentType: runtime.ContentTypeJSON}, DefaultArgs())
		if (want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A cycle looks at namespaces that have lost something, and not at all that have gangs.
func TestPeaksOfNamespaces(t *testing.T) {
	w := newFixture(t)
	for _, name := range []string{"a-0", "a-1", "a-2"} {
		w.run(name, "n1")
	}
	w.look()
	if len(w.lower) != 0 || len(w.usages) != 1 {
		t.Errorf("nothing was lost, and %v are looked at of %d", w.lower, len(w.usages))
	}
	w.die("a-2")
	w.look()
	if len(w.lower) != 1 {
		t.Errorf("a member was lost, and %v are looked at", w.lower)
	}
	w.clock.Step(2 * time.Minute)
	w.look()
	if got := w.usages[enginetest.Namespace]; len(w.lower) != 0 || got.peak[corev1.ResourcePods] != 2 {
		t.Errorf("its time is over: %v, it had %v", w.lower, got.peak)
	}
}

// What may be claimed for a namespace does not grow when a place is taken again, nor when it is given up.
func TestPeakIsOfPlaces(t *testing.T) {
	w := newFixture(t)
	for _, name := range []string{"a-0", "a-1", "a-2"} {
		w.run(name, "n1")
	}
	w.die("a-2")
	w.want("n1 for a-2 until 12:02")
	w.reserve(groupA, enginetest.Pod("a-3", "a"), "n1") // in its stead
	w.die("a-1")
	w.clock.Step(2 * time.Minute) // and another place is not kept longer
	if got := w.usages[enginetest.Namespace]; got.peak[corev1.ResourcePods] != 3 || got.placed[corev1.ResourcePods] != 2 {
		t.Errorf("it has %v, and had %v, want 2 pods of 3", got.placed, got.peak)
	}
}
