package planner

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// desk is a planner without an engine.
type desk struct {
	*Planner
	clock *clocktesting.FakeClock
	woken []string
}

var group = types.NamespacedName{Namespace: "default", Name: "g"}

func newDesk() *desk {
	d := &desk{clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	d.Planner = New(nil, NewAttempts(d, d.clock), unclaimed{}, reasons.New(d.clock, nil), nil, nil)
	return d
}

func (d *desk) Activate(pods map[string]*corev1.Pod) {
	for name := range pods {
		d.woken = append(d.woken, name)
	}
}

// unclaimed is an empty ledger.
type unclaimed struct{}

func (unclaimed) Withheld(fwk.NodeInfoLister, types.NamespacedName, []*corev1.Pod) []claims.Claim {
	return nil
}
func (unclaimed) Nodes(types.NamespacedName) []string  { return nil }
func (unclaimed) Progress(types.NamespacedName) string { return "" }
func (unclaimed) Reader(string) audience.Reader        { return audience.Reader{} }

// try is an attempt that fails, with something happening meanwhile.
func (d *desk) try(v *verdict, meanwhile func()) []*memo {
	p := member("g", 0)
	d.begin(&framework.QueuedPodGroupInfo{
		PodGroupInfo:   &framework.PodGroupInfo{Namespace: "default", Name: "g", Type: fwk.PodGroupKeyType},
		QueuedPodInfos: map[fwk.EntityKey][]*framework.QueuedPodInfo{fwk.PodGroupKey("default", "g"): {{PodInfo: &framework.PodInfo{Pod: p}}}},
	})
	d.now.verdict = v
	if meanwhile != nil {
		meanwhile()
	}
	d.end(group, fwk.NewStatus(fwk.Unschedulable))
	return d.close()
}

func (d *desk) event(resource fwk.EventResource, action fwk.ActionType, before, after any) {
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
		event   func(*desk)
		helps   bool
	}{
		"unproven, a pod came": {func() *verdict { return nil }, func(d *desk) { d.event(fwk.AssignedPod, fwk.Add, nil, onNode("cpu", "1")) }, true},
		"proven, a pod came":   {proven, func(d *desk) { d.event(fwk.AssignedPod, fwk.Add, nil, onNode("cpu", "1")) }, false},
		"proven, a pod went":   {proven, func(d *desk) { d.event(fwk.AssignedPod, fwk.Delete, onNode("cpu", "1"), nil) }, true},
		"proven, a pod shrank": {proven, func(d *desk) {
			d.event(fwk.AssignedPod, fwk.UpdatePodScaleDown, onNode("cpu", "2"), onNode("cpu", "1"))
		}, true},
		"proven, a pod was changed":       {proven, func(d *desk) { d.event(fwk.AssignedPod, fwk.UpdatePodLabel, onNode("cpu", "1"), onNode("cpu", "1")) }, false},
		"proven, a node went":             {proven, func(d *desk) { d.event(fwk.Node, fwk.Delete, node(), nil) }, false},
		"proven, a node changed":          {proven, func(d *desk) { d.event(fwk.Node, fwk.UpdateNodeTaint, node(), node()) }, true},
		"proven, a volume came":           {proven, func(d *desk) { d.event(fwk.PersistentVolume, fwk.Add, nil, nil) }, false},
		"proven, somebody's pod waits":    {proven, func(d *desk) { d.event(fwk.UnscheduledPod, fwk.Add, nil, pod("x", "")) }, false},
		"proven, all are to be tried":     {proven, func(d *desk) { d.event(fwk.WildCard, fwk.All, nil, nil) }, true},
		"lacking, a node changed":         {lacking, func(d *desk) { d.event(fwk.Node, fwk.UpdateNodeTaint, node(), node()) }, false},
		"lacking, something else came":    {lacking, func(d *desk) { d.event(fwk.Node, fwk.Add, nil, node("memory", "1Ti", "cpu", "64")) }, false},
		"lacking, half of it came":        {lacking, func(d *desk) { d.event(fwk.AssignedPod, fwk.Delete, onNode("nvidia.com/gpu", "1", "cpu", "1"), nil) }, false},
		"lacking, all of it came at once": {lacking, func(d *desk) { d.event(fwk.Node, fwk.Add, nil, node("nvidia.com/gpu", "2", "cpu", "1")) }, true},
		"lacking, all of it came piece by piece": {lacking, func(d *desk) {
			d.event(fwk.AssignedPod, fwk.Delete, onNode("nvidia.com/gpu", "1"), nil)
			d.event(fwk.AssignedPod, fwk.Delete, onNode("cpu", "3"), nil)
			d.event(fwk.Node, fwk.UpdateNodeAllocatable, node("nvidia.com/gpu", "4"), node("nvidia.com/gpu", "5"))
		}, true},
		"lacking, devices came": {lacking, func(d *desk) { d.event(fwk.ResourceSlice, fwk.Add, nil, nil) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk()
			d.try(c.verdict(), nil)
			d.clock.Step(rest)
			c.event(d)
			if helped := len(d.woken) == 1 && !d.parked(group); helped != c.helps || !helped && !d.parked(group) {
				t.Errorf("woken %v, parked %t", d.woken, d.parked(group))
			}
		})
	}
}

// Nothing that happens during an attempt is lost, and a gang rests between attempts.
func TestRest(t *testing.T) {
	room := func(d *desk) func() {
		return func() { d.event(fwk.AssignedPod, fwk.Delete, onNode("cpu", "1"), nil) }
	}
	d := newDesk()
	if again := d.try(&verdict{proven: true}, room(d)); len(again) != 0 || !d.parked(group) {
		t.Errorf("room came free during the attempt: tried again without rest (%d)", len(again))
	}
	d.clock.Step(rest - 1)
	if len(d.woken) != 0 {
		t.Error("the gang did not rest")
	}
	d.clock.Step(1)
	if len(d.woken) != 1 || d.parked(group) {
		t.Errorf("after its rest: woken %v", d.woken)
	}

	d = newDesk()
	d.try(&verdict{proven: true}, nil)
	room(d)()
	room(d)()
	if len(d.woken) != 0 {
		t.Error("the gang did not rest")
	}
	d.clock.Step(rest)
	if len(d.woken) != 1 {
		t.Errorf("woken %d times by two events", len(d.woken))
	}

	d = newDesk()
	if again := d.try(&verdict{proven: true}, func() { d.Wake(group) }); len(again) != 1 || d.parked(group) {
		t.Errorf("the gang itself changed during the attempt: %d to be tried again, parked %t", len(again), d.parked(group))
	}
}

// Whatever happens, a gang is tried again some time.
func TestParkedForATime(t *testing.T) {
	for name, c := range map[string]struct {
		verdict *verdict
		after   time.Duration
	}{"proven": {&verdict{proven: true}, parkedAtMost}, "unproven": {nil, defaultArgs().RetryPeriod.Duration}} {
		d := newDesk()
		d.try(c.verdict, nil)
		d.clock.Step(c.after - 1)
		if len(d.woken) != 0 || !d.parked(group) {
			t.Errorf("%s: woken too early", name)
		}
		d.clock.Step(1)
		if len(d.woken) != 1 || d.parked(group) {
			t.Errorf("%s: not woken", name)
		}
	}
}

// What is kept from gangs concerns those that it keeps waiting, and those of which nothing is known.
func TestReleased(t *testing.T) {
	for name, c := range map[string]struct {
		verdict *verdict
		helps   bool
	}{
		"claimed": {&verdict{proven: true, claimed: true}, true}, "not claimed": {&verdict{proven: true}, false}, "unproven": {nil, true},
	} {
		d := newDesk()
		d.try(c.verdict, nil)
		d.clock.Step(rest)
		d.Released()
		if helped := len(d.woken) == 1; helped != c.helps {
			t.Errorf("%s: woken %t, want %t", name, helped, c.helps)
		}
	}
}

// A fault has its own retry.
func TestFaultsAreNotParked(t *testing.T) {
	d := newDesk()
	again := d.try(nil, func() { d.failed(member("g", 0), fwk.NewStatus(fwk.Error, "broken"), nil) })
	if len(again) != 0 || d.parked(group) {
		t.Error("a gang that failed for a fault is parked")
	}
}
