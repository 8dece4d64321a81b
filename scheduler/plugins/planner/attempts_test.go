package planner

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// fixture is a planner without an engine.
type fixture struct {
	*Planner
	clock *clocktesting.FakeClock
	woken []string
}

var group = types.NamespacedName{Namespace: "default", Name: "g"}

func newFixture() *fixture {
	d := &fixture{clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	d.Planner = New(engine.NewHandle(), NewAttempts(d, d.clock), unclaimed{}, nil, reasons.New(d.clock, nil), nil, nil)
	return d
}

func (d *fixture) Activate(pods map[string]*corev1.Pod) {
	for name := range pods {
		d.woken = append(d.woken, name)
	}
}

// unclaimed is an empty ledger.
type unclaimed struct{}

func (unclaimed) Withheld(fwk.NodeInfoLister, types.NamespacedName, []*corev1.Pod, map[types.UID]bool) []claims.Claim {
	return nil
}
func (unclaimed) Nodes(types.NamespacedName) []string  { return nil }
func (unclaimed) Progress(types.NamespacedName) string { return "" }
func (unclaimed) Reader(string) audience.Reader        { return audience.Reader{} }

// try is an attempt that fails; meanwhile runs during it.
func (d *fixture) try(v *verdict, meanwhile func()) []*parkedGang {
	p := member("g", 0)
	d.begin(&framework.QueuedPodGroupInfo{
		PodGroupInfo:   &framework.PodGroupInfo{Namespace: "default", Name: "g", Type: fwk.PodGroupKeyType},
		QueuedPodInfos: map[fwk.EntityKey][]*framework.QueuedPodInfo{fwk.PodGroupKey("default", "g"): {{PodInfo: &framework.PodInfo{Pod: p}}}},
	})
	d.current.verdict = v
	if meanwhile != nil {
		meanwhile()
	}
	d.end(group, fwk.NewStatus(fwk.Unschedulable))
	return d.close()
}

func (d *fixture) event(resource fwk.EventResource, action fwk.ActionType, before, after any) {
	d.wake(d.observe(fwk.ClusterEvent{Resource: resource, ActionType: action}, before, after)...)
}

func onNode(amounts ...string) *corev1.Pod {
	p := pod("p", "", amounts...)
	p.Spec.NodeName = "n"
	return p
}

// Which events help which gangs.
func TestObserve(t *testing.T) {
	proven := func() *verdict { return &verdict{proven: true} }
	lacking := func() *verdict {
		return &verdict{proven: true, lacks: map[corev1.ResourceName]int64{gpus: 2, corev1.ResourceCPU: 1000}}
	}
	node := func(amounts ...string) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{Allocatable: resources(amounts...)}}
	}
	for name, c := range map[string]struct {
		verdict func() *verdict
		event   func(*fixture)
		helps   bool
	}{
		"unproven, a pod came": {func() *verdict { return nil }, func(d *fixture) { d.event(fwk.AssignedPod, fwk.Add, nil, onNode("cpu", "1")) }, true},
		"proven, a pod came":   {proven, func(d *fixture) { d.event(fwk.AssignedPod, fwk.Add, nil, onNode("cpu", "1")) }, false},
		"proven, a pod went":   {proven, func(d *fixture) { d.event(fwk.AssignedPod, fwk.Delete, onNode("cpu", "1"), nil) }, true},
		"proven, a pod shrank": {proven, func(d *fixture) {
			d.event(fwk.AssignedPod, fwk.UpdatePodScaleDown, onNode("cpu", "2"), onNode("cpu", "1"))
		}, true},
		"proven, a pod was changed":       {proven, func(d *fixture) { d.event(fwk.AssignedPod, fwk.UpdatePodLabel, onNode("cpu", "1"), onNode("cpu", "1")) }, false},
		"proven, a node went":             {proven, func(d *fixture) { d.event(fwk.Node, fwk.Delete, node(), nil) }, false},
		"proven, a node changed":          {proven, func(d *fixture) { d.event(fwk.Node, fwk.UpdateNodeTaint, node(), node()) }, true},
		"proven, a volume came":           {proven, func(d *fixture) { d.event(fwk.PersistentVolume, fwk.Add, nil, nil) }, false},
		"proven, another pod waits":       {proven, func(d *fixture) { d.event(fwk.UnscheduledPod, fwk.Add, nil, pod("x", "")) }, false},
		"proven, all are to be tried":     {proven, func(d *fixture) { d.event(fwk.WildCard, fwk.All, nil, nil) }, true},
		"lacking, a node changed":         {lacking, func(d *fixture) { d.event(fwk.Node, fwk.UpdateNodeTaint, node(), node()) }, false},
		"lacking, something else came":    {lacking, func(d *fixture) { d.event(fwk.Node, fwk.Add, nil, node("memory", "1Ti", "cpu", "64")) }, false},
		"lacking, half of it came":        {lacking, func(d *fixture) { d.event(fwk.AssignedPod, fwk.Delete, onNode("nvidia.com/gpu", "1", "cpu", "1"), nil) }, false},
		"lacking, all of it came at once": {lacking, func(d *fixture) { d.event(fwk.Node, fwk.Add, nil, node("nvidia.com/gpu", "2", "cpu", "1")) }, true},
		"lacking, all of it came piece by piece": {lacking, func(d *fixture) {
			d.event(fwk.AssignedPod, fwk.Delete, onNode("nvidia.com/gpu", "1"), nil)
			d.event(fwk.AssignedPod, fwk.Delete, onNode("cpu", "3"), nil)
			d.event(fwk.Node, fwk.UpdateNodeAllocatable, node("nvidia.com/gpu", "4"), node("nvidia.com/gpu", "5"))
		}, true},
		"lacking, devices came": {lacking, func(d *fixture) { d.event(fwk.ResourceSlice, fwk.Add, nil, nil) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture()
			d.try(c.verdict(), nil)
			d.clock.Step(minParked)
			c.event(d)
			if helped := len(d.woken) == 1 && !d.isParked(group); helped != c.helps || !helped && !d.isParked(group) {
				t.Errorf("woken %v, parked %t", d.woken, d.isParked(group))
			}
		})
	}
}

// No event during an attempt is lost, and a gang is parked for a minimum time between attempts.
func TestMinimumParkTime(t *testing.T) {
	room := func(d *fixture) func() {
		return func() { d.event(fwk.AssignedPod, fwk.Delete, onNode("cpu", "1"), nil) }
	}
	d := newFixture()
	if again := d.try(&verdict{proven: true}, room(d)); len(again) != 0 || !d.isParked(group) {
		t.Errorf("room came free during the attempt: tried again at once (%d)", len(again))
	}
	d.clock.Step(minParked - 1)
	if len(d.woken) != 0 {
		t.Error("the gang was woken too early")
	}
	d.clock.Step(1)
	if len(d.woken) != 1 || d.isParked(group) {
		t.Errorf("after the minimum time: woken %v", d.woken)
	}

	d = newFixture()
	d.try(&verdict{proven: true}, nil)
	room(d)()
	room(d)()
	if len(d.woken) != 0 {
		t.Error("the gang was woken too early")
	}
	d.clock.Step(minParked)
	if len(d.woken) != 1 {
		t.Errorf("woken %d times by two events", len(d.woken))
	}

	d = newFixture()
	if again := d.try(&verdict{proven: true}, func() { d.Wake(group) }); len(again) != 1 || d.isParked(group) {
		t.Errorf("the gang itself changed during the attempt: %d to be tried again, parked %t", len(again), d.isParked(group))
	}
}

// A gang that changes without a pause is tried at once after the first change, and then once in the minimum time: others are to have their turns.
func TestAGangThatChangesAllTheTime(t *testing.T) {
	d := newFixture()
	change := func() { d.Changed(group) }
	d.try(&verdict{proven: true}, nil)
	if change(); len(d.woken) != 1 || d.isParked(group) {
		t.Fatalf("after the first change: woken %v", d.woken)
	}
	for attempt := range 3 {
		d.woken = nil
		if again := d.try(&verdict{proven: true}, change); len(again) != 0 || !d.isParked(group) {
			t.Fatalf("attempt %d, which is due to a change: tried again at once (%d)", attempt, len(again))
		}
		change()
		d.clock.Step(minParked - 1)
		if change(); len(d.woken) != 0 {
			t.Fatalf("attempt %d: woken too early", attempt)
		}
		if d.clock.Step(1); len(d.woken) != 1 || d.isParked(group) {
			t.Fatalf("attempt %d: woken %v after the minimum time", attempt, d.woken)
		}
	}
	d.woken = nil
	if again := d.try(&verdict{proven: true}, func() { d.Wake(group) }); len(again) != 1 {
		t.Errorf("tried again %d times for another than the gang", len(again))
	}
	d.try(&verdict{proven: true}, nil)
	d.Wake(group)
	if len(d.woken) != 1 {
		t.Errorf("woken %v by another than the gang", d.woken)
	}
	d.try(&verdict{proven: true}, nil)
	d.clock.Step(minParked)
	if change(); len(d.woken) != 2 {
		t.Errorf("woken %v by a change after a pause", d.woken)
	}
}

// Nothing is kept of gangs that are gone, whatever was to happen to them: tenants may have ever new ones.
func TestGangsThatAreGone(t *testing.T) {
	d := newFixture()
	d.try(&verdict{proven: true}, nil)
	d.Changed(group)
	d.try(&verdict{proven: true}, nil)
	d.Changed(group) // which waits for the minimum time
	d.forgetNext(group)
	d.clock.Step(minParked)
	if d.isParked(group) || len(d.selfChanged)+len(d.firstMembers)+len(d.waiting.all) > 0 {
		t.Errorf("kept: %v, %v, %v", d.selfChanged, d.firstMembers, d.waiting.all)
	}
	d.try(nil, func() { d.Wake(group); d.forgetNext(group) }) // during an attempt
	if len(d.selfChanged) > 0 {
		t.Errorf("kept: %v", d.selfChanged)
	}
	// One of its name that comes at once has changed as well.
	d.try(&verdict{proven: true}, nil)
	d.Changed(group)
	d.try(&verdict{proven: true}, nil)
	d.Changed(group)
	d.forgetNext(group)
	d.Changed(group)
	d.clock.Step(minParked)
	if !d.selfChanged[group] {
		t.Error("what has changed of the next gang of the name is forgotten")
	}
}

// A parked gang is tried again in the end.
func TestParkedForATime(t *testing.T) {
	for name, c := range map[string]struct {
		verdict  *verdict
		meantime func(*fixture)
		after    time.Duration
	}{
		"proven":          {&verdict{proven: true, complete: true}, nil, maxParked},
		"half a reason":   {&verdict{proven: true}, nil, DefaultArgs().RetryPeriod.Duration},
		"unproven":        {nil, nil, DefaultArgs().RetryPeriod.Duration},
		"victims unknown": {&verdict{proven: true}, func(d *fixture) { d.VictimsUnknown(group, 0) }, victimsRetry},
	} {
		d := newFixture()
		d.try(c.verdict, func() {
			if c.meantime != nil {
				c.meantime(d)
			}
		})
		d.clock.Step(c.after - 1)
		if len(d.woken) != 0 || !d.isParked(group) {
			t.Errorf("%s: woken too early", name)
		}
		d.clock.Step(1)
		if len(d.woken) != 1 || d.isParked(group) {
			t.Errorf("%s: not woken", name)
		}
	}
}

// The end of a claim concerns the gangs that it kept out, and those without a proof.
func TestReleased(t *testing.T) {
	for name, c := range map[string]struct {
		verdict *verdict
		helps   bool
	}{
		"claimed": {&verdict{proven: true, claimed: true}, true}, "not claimed": {&verdict{proven: true}, false}, "unproven": {nil, true},
	} {
		d := newFixture()
		d.try(c.verdict, nil)
		d.clock.Step(minParked)
		d.Released()
		if helped := len(d.woken) == 1; helped != c.helps {
			t.Errorf("%s: woken %t, want %t", name, helped, c.helps)
		}
	}
}

// The engine retries errors by itself.
func TestErrorsAreNotParked(t *testing.T) {
	d := newFixture()
	again := d.try(nil, func() { d.failed(member("g", 0), fwk.NewStatus(fwk.Error, "broken")) })
	if len(again) != 0 || d.isParked(group) {
		t.Error("a gang that failed with an error is parked")
	}
}

// A gang that is deleted during an attempt leaves no reason behind.
func TestTheReasonOfADeletedGang(t *testing.T) {
	store, groups := reasons.New(clocktesting.NewFakeClock(time.Unix(0, 0)), nil), engine.NewVirtualGroups()
	sink := GroupSink{VirtualGroups: groups, Reasons: store}
	p := New(nil, nil, unclaimed{}, groups, store, nil, nil)
	why := &reasons.Reason{Finding: answer.Finding{Message: "no room"}}
	for _, c := range []struct {
		name  string
		there bool
	}{{"there", true}, {"deleted", false}} {
		t.Run(c.name, func(t *testing.T) {
			groups.Set(&schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: group.Namespace, Name: group.Name}})
			if !c.there {
				sink.Delete(group.Namespace, group.Name)
			}
			p.report(group, why, fwk.NewStatus(fwk.Unschedulable))
			if _, kept := store.Get(group); kept != c.there {
				t.Errorf("kept: %v", kept)
			}
		})
	}
}

// noQueue is a queue of the engine that moves nothing.
type noQueue struct{ internalqueue.SchedulingQueue }

func (noQueue) MoveAllToActiveOrBackoffQueue(klog.Logger, fwk.ClusterEvent, any, any, internalqueue.PreEnqueueCheck) {
}

func (noQueue) Activate(klog.Logger, map[string]*corev1.Pod) {}

// A member that comes during an attempt is not in it: the gang is tried again at once, which reports on it, too.
func TestAMemberThatComesDuringAnAttempt(t *testing.T) {
	for name, again := range map[string]int{"g": 1, "other": 0} {
		d := newFixture()
		q := &queue{SchedulingQueue: noQueue{}, planner: d.Planner}
		comes := func() {
			event := fwk.ClusterEvent{Resource: fwk.UnscheduledPod, ActionType: fwk.Add}
			q.MoveAllToActiveOrBackoffQueue(klog.Background(), event, nil, member(name, 1), nil)
		}
		if got := d.try(&verdict{proven: true}, comes); len(got) != again || d.isParked(group) == (again > 0) {
			t.Errorf("a member of %s: tried again %d times, parked %t", name, len(got), d.isParked(group))
		}
	}
}
