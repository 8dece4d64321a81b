package planner

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// recordingQueue is the engine's queue, and records the calls.
type recordingQueue struct {
	internalqueue.SchedulingQueue
	activated []string
	moves     int
	check     internalqueue.PreEnqueueCheck
	updates   int
	exchanged []string
	moved     func() // is called by MoveAllToActiveOrBackoffQueue, unless it is nil
}

func (q *recordingQueue) Update(context.Context, *corev1.Pod, *corev1.Pod) { q.updates++ }

func (q *recordingQueue) Delete(_ klog.Logger, pod *corev1.Pod) {
	q.exchanged = append(q.exchanged, "-"+pod.Name)
}

func (q *recordingQueue) Add(_ context.Context, pod *corev1.Pod) {
	q.exchanged = append(q.exchanged, "+"+pod.Name)
}

func (q *recordingQueue) Activate(_ klog.Logger, pods map[string]*corev1.Pod) {
	for name := range pods {
		q.activated = append(q.activated, name)
	}
}

func (q *recordingQueue) MoveAllToActiveOrBackoffQueue(_ klog.Logger, _ fwk.ClusterEvent, _, _ any, check internalqueue.PreEnqueueCheck) {
	q.moves, q.check = q.moves+1, check
	if q.moved != nil {
		q.moved()
	}
}

// An event of one gang has the engine look at that gang only.
func TestEventsOfOneGang(t *testing.T) {
	clock := testclock.NewFakeClock(metav1.Now().Time)
	handle := engine.NewHandle()
	attempts := NewAttempts(handle, clock)
	store := reasons.New(clock, nil)
	p := New(handle, attempts, claims.NewLedger(handle, attempts, clock, audience.Hidden), nil, store, nil, nil)
	mine, other, alone := pod("a", "g"), pod("b", "h"), pod("c", "")
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "g"}}
	reported, lowered, apart := group.DeepCopy(), group.DeepCopy(), group.DeepCopy()
	reported.ResourceVersion, reported.Status.Conditions = "2", []metav1.Condition{{Type: "PodGroupInitiallyScheduled"}}
	lowered.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: 1}
	apart.Annotations = map[string]string{gang.TopologyPreferred: "rack"}
	for name, c := range map[string]struct {
		event         fwk.ClusterEvent
		before, after any
		activated     int
		unmoved       bool    // the engine does not go through what waits
		concerned     [3]bool // mine, other, alone
	}{
		"a member comes":    {event: fwk.ClusterEvent{Resource: fwk.UnscheduledPod, ActionType: fwk.Add}, after: mine, activated: 1, unmoved: true},
		"a member changes":  {event: fwk.ClusterEvent{Resource: fwk.UnscheduledPod, ActionType: fwk.Update}, before: mine, after: mine, concerned: [3]bool{true, false, true}},
		"a group comes":     {event: fwk.ClusterEvent{Resource: fwk.PodGroup, ActionType: fwk.Add}, after: group, unmoved: true},
		"a group's status":  {event: fwk.ClusterEvent{Resource: fwk.PodGroup, ActionType: fwk.Update}, before: group, after: reported, unmoved: true},
		"a group changes":   {event: fwk.ClusterEvent{Resource: fwk.PodGroup, ActionType: fwk.Update}, before: group, after: lowered, concerned: [3]bool{true, false, true}},
		"a group's domain":  {event: fwk.ClusterEvent{Resource: fwk.PodGroup, ActionType: fwk.Update}, before: group, after: apart, concerned: [3]bool{true, false, true}},
		"a pod alone comes": {event: fwk.ClusterEvent{Resource: fwk.UnscheduledPod, ActionType: fwk.Add}, after: alone, concerned: [3]bool{true, true, true}},
		"a pod's status":    {event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Update}, before: onNode(), after: onNode(), concerned: [3]bool{false, false, true}},
		"a node comes":      {event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add}, after: &corev1.Node{}, concerned: [3]bool{true, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			inner := &recordingQueue{}
			q := &queue{SchedulingQueue: inner, planner: p}
			q.began.Store(true)
			q.MoveAllToActiveOrBackoffQueue(klog.Background(), c.event, c.before, c.after, nil)
			if len(inner.activated) != c.activated || (inner.moves == 0) != c.unmoved {
				t.Fatalf("activated %v, moved %d times", inner.activated, inner.moves)
			}
			for i, pod := range []*corev1.Pod{mine, other, alone} {
				if looked := inner.moves > 0 && (inner.check == nil || inner.check(pod)); looked != c.concerned[i] {
					t.Errorf("pod %s: looked at: %t", pod.Name, looked)
				}
			}
		})
	}
}

// What is written on a member that waits is no question to the others of its gang: a thousand members would be a million.
func TestConditionsOfMembers(t *testing.T) {
	handle := engine.NewHandle()
	inner := &recordingQueue{}
	q := &queue{SchedulingQueue: inner, planner: &Planner{Attempts: NewAttempts(handle, testclock.NewFakeClock(metav1.Now().Time)), engine: handle}}
	for name, tt := range map[string]struct {
		pod    *corev1.Pod
		change func(*corev1.Pod)
		passed int
	}{
		"a condition": {pod("a", "g"), func(p *corev1.Pod) {
			p.ResourceVersion, p.ManagedFields = "2", []metav1.ManagedFieldsEntry{{Manager: "gang-scheduler"}}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled}}
		}, 0},
		"a condition of a pod alone": {pod("c", ""), func(p *corev1.Pod) { p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled}} }, 1},
		"a nomination":               {pod("a", "g"), func(p *corev1.Pod) { p.Status.NominatedNodeName = "n1" }, 1},
		"a claim":                    {pod("a", "g"), func(p *corev1.Pod) { p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu"}} }, 1},
		"a label":                    {pod("a", "g"), func(p *corev1.Pod) { p.Labels = map[string]string{"app": "x"} }, 1},
		"an annotation":              {pod("a", "g"), func(p *corev1.Pod) { p.Annotations = map[string]string{"app": "x"} }, 1},
		"a toleration":               {pod("a", "g"), func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "x"}} }, 1},
		"it leaves":                  {pod("a", "g"), func(p *corev1.Pod) { now := metav1.Now(); p.DeletionTimestamp = &now }, 1},
		"another gang":               {pod("a", "g"), func(p *corev1.Pod) { p.Spec.SchedulingGroup.PodGroupName = ptr.To("h") }, 1},
	} {
		for _, generation := range []int64{0, 1} { // API servers before 1.33 do not count the changes of the spec
			tt.pod.Generation = generation
			after := tt.pod.DeepCopy()
			tt.change(after)
			if generation > 0 && !equality.Semantic.DeepEqual(tt.pod.Spec.Tolerations, after.Spec.Tolerations) {
				after.Generation++
			}
			inner.updates = 0
			if q.Update(t.Context(), tt.pod, after); inner.updates != tt.passed {
				t.Errorf("%s: passed on %d times", name, inner.updates)
			}
		}
	}
}

// A member that changes the priority of its gang changes that of all of them: while the gang is parked none of them is a question to the others.
func TestTermsOfMembers(t *testing.T) {
	handle := engine.NewHandle()
	for name, tt := range map[string]struct {
		gang    string
		change  func(*corev1.Pod)
		updates int
	}{
		"a priority":               {"g", func(p *corev1.Pod) { p.Spec.Priority = ptr.To[int32](7) }, 0},
		"a policy":                 {"g", func(p *corev1.Pod) { p.Spec.PreemptionPolicy = ptr.To(corev1.PreemptNever) }, 0},
		"a priority and a label":   {"g", func(p *corev1.Pod) { p.Spec.Priority, p.Labels = ptr.To[int32](7), map[string]string{"app": "x"} }, 1},
		"a gang that may be tried": {"h", func(p *corev1.Pod) { p.Spec.Priority = ptr.To[int32](7) }, 1},
		"a pod that is in no gang": {"", func(p *corev1.Pod) { p.Spec.Priority = ptr.To[int32](7) }, 1},
	} {
		attempts := NewAttempts(handle, testclock.NewFakeClock(metav1.Now().Time)) // a change that counts wakes the gang
		attempts.park(group, &parkedGang{member: pod("a", "g")}, maxParked)
		inner := &recordingQueue{}
		q := &queue{SchedulingQueue: inner, planner: &Planner{Attempts: attempts, engine: handle}}
		before := pod("a", tt.gang)
		after := before.DeepCopy()
		tt.change(after)
		q.Update(t.Context(), before, after)
		if exchanged := fmt.Sprint(inner.exchanged) == "[-a +a]"; inner.updates != tt.updates || exchanged != (tt.updates == 0) {
			t.Errorf("%s: %d updates, exchanged %v", name, inner.updates, inner.exchanged)
		}
	}
}

// A parked gang whose priority changes is placed with it when there is room.
func TestAParkedGangOfAnotherPriority(t *testing.T) {
	r := newRig(t)
	r.node("n1", "nvidia.com/gpu", "1")
	r.gang("g", 2)
	r.create(member("g", 0, "nvidia.com/gpu", "1"), member("g", 1, "nvidia.com/gpu", "1"))
	r.parked("g")
	groups, pods := r.client.SchedulingV1beta1().PodGroups("default"), r.client.CoreV1().Pods("default")
	g, err := groups.Get(t.Context(), "g", metav1.GetOptions{})
	r.must(err)
	g.Spec.Priority = ptr.To[int32](7)
	_, err = groups.Update(t.Context(), g, metav1.UpdateOptions{})
	r.must(err)
	for _, name := range []string{"g-0", "g-1"} {
		p, err := pods.Get(t.Context(), name, metav1.GetOptions{})
		r.must(err)
		p.Spec.Priority = ptr.To[int32](7)
		_, err = pods.Update(t.Context(), p, metav1.UpdateOptions{})
		r.must(err)
	}
	r.node("n2", "nvidia.com/gpu", "1")
	r.bound("g-0", "g-1")
}

// Before the engine has taken anything from the queue, nothing was refused that a node or a pod could help; every node of the cluster is an event then, and
// every pod. A member may complete its gang.
func TestEventsBeforeTheFirstAttempt(t *testing.T) {
	handle := engine.NewHandle()
	inner := &recordingQueue{}
	var gone int
	p := &Planner{Attempts: NewAttempts(handle, testclock.NewFakeClock(metav1.Now().Time)), engine: handle, contents: engine.NewNodeContents()}
	e := Follow(&upstream.Scheduler{
		SchedulingQueue: inner, NextEntity: func(klog.Logger) (framework.QueuedEntityInfo, error) { return nil, nil },
	}, p, func(*corev1.Pod) { gone++ })
	send := func() {
		for _, c := range []struct {
			resource      fwk.EventResource
			before, after any
		}{
			{resource: fwk.Node, after: &corev1.Node{}},
			{resource: fwk.AssignedPod, after: pod("x", "")},
			{resource: fwk.AssignedPod, after: pod("z", "g")},
			{resource: fwk.AssignedPod, before: pod("y", "")},
			{resource: fwk.ResourceClaim, after: &resourcev1.ResourceClaim{}},
		} {
			e.SchedulingQueue.MoveAllToActiveOrBackoffQueue(klog.Background(), fwk.ClusterEvent{Resource: c.resource, ActionType: fwk.Add}, c.before, c.after, nil)
		}
	}
	send()
	if inner.moves != 2 || gone != 1 { // gates look at the members of a gang, and at claims
		t.Errorf("before: the engine went %d times through what waits, and %d pods were gone", inner.moves, gone)
	}
	if _, err := e.NextEntity(klog.Background()); err != nil {
		t.Fatal(err)
	}
	send()
	if inner.moves != 7 || gone != 2 {
		t.Errorf("after: the engine went %d times through what waits, and %d pods were gone", inner.moves, gone)
	}
}

// The engine notifies its queue of a deleted node before its cache lets go of it. A gang that is tried in between would fail as before, and nothing would
// wake it again: what waits is gone through after that.
func TestADeletedNodeIsGoneWhenItIsAnEvent(t *testing.T) {
	handle := engine.NewHandle()
	inner := &recordingQueue{}
	cache := internalcache.New(t.Context(), nil, false, false)
	p := &Planner{
		Attempts: NewAttempts(handle, testclock.NewFakeClock(metav1.Now().Time)), engine: handle, contents: engine.NewNodeContents(), changed: engine.NewChangedNodes(),
	}
	e := Follow(&upstream.Scheduler{
		SchedulingQueue: inner, Cache: cache, NextEntity: func(klog.Logger) (framework.QueuedEntityInfo, error) { return nil, nil },
	}, p, func(*corev1.Pod) {})
	if _, err := e.NextEntity(klog.Background()); err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	e.Cache.AddNode(klog.Background(), node)
	p.park(group, &parkedGang{member: pod("a", "g")}, maxParked)
	p.parkedGangs[group].notBefore = p.clock.Now()
	inner.moved = func() {
		if n := cache.NodeCount(); n != 0 {
			t.Errorf("the engine goes through what waits, and its cache has %d nodes", n)
		}
	}
	e.SchedulingQueue.MoveAllToActiveOrBackoffQueue(klog.Background(), fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Delete}, node, nil, nil)
	if !p.isParked(group) {
		t.Error("the gang is tried while the cache has the node")
	}
	if err := e.Cache.RemoveNode(klog.Background(), node); err != nil {
		t.Fatal(err)
	}
	if p.isParked(group) || inner.moves != 1 {
		t.Errorf("parked %t, and the engine went %d times through what waits", p.isParked(group), inner.moves)
	}
}

// The engine looks at one member of a parked gang at each event, however many there are, and does not try the gang. Others are evaluated.
func TestParkedGangsAreNotEvaluated(t *testing.T) {
	r := newRig(t)
	r.node("n1", "nvidia.com/gpu", "1", "pods", "110")
	r.gang("g", 20)
	for i := range 20 {
		r.create(member("g", i, "nvidia.com/gpu", "1"))
	}
	r.parked("g")
	came := onNode("cpu", "1")
	for _, c := range []struct {
		event  fwk.ClusterEvent
		looked int
	}{
		{fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Add}, 1},
		{fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.UpdateNodeTaint}, 1},
		{fwk.ClusterEvent{Resource: fwk.WildCard, ActionType: fwk.All}, 20},
	} {
		check, looked := r.planner.triable(c.event, nil), 0
		r.engine.SchedulingQueue.(*queue).SchedulingQueue.MoveAllToActiveOrBackoffQueue(klog.Background(), c.event, nil, came, func(pod *corev1.Pod) bool {
			looked++
			return check(pod)
		})
		if looked != c.looked {
			t.Errorf("%v: the engine looks at %d members, want %d", c.event, looked, c.looked)
		}
		if !check(pod("x", "")) || !check(pod("y", "h")) {
			t.Errorf("%v: others are not evaluated", c.event)
		}
	}
	r.quiet("events that do not help")
}

// A gang of which members are missing is not evaluated at events that do not complete it, and is placed when one does.
func TestIncompleteGangsAreNotEvaluated(t *testing.T) {
	r := newRig(t)
	r.node("n1", "cpu", "4", "pods", "110")
	r.gang("g", 3)
	r.create(pod("a", "g", "cpu", "1"), pod("b", "g", "cpu", "1"))
	poll.Until(r, "two members wait", func() bool {
		queued, ok := r.engine.SchedulingQueue.GetPodGroup("g", "default", fwk.PodGroupKeyType)
		return ok && len(queued.QueuedPodInfos[fwk.PodGroupKey("default", "g")]) == 2
	})
	evaluated := func(name, gang string) bool { return r.planner.triable(fwk.ClusterEvent{}, nil)(pod(name, gang)) }
	if evaluated("a", "g") || !evaluated("x", "") {
		t.Error("a member of two of three is evaluated, or a pod on its own is not")
	}
	r.create(pod("c", "g", "cpu", "1"))
	poll.Until(r, "the gang is placed", func() bool { return len(r.places()) == 3 })
	if !evaluated("a", "g") {
		t.Error("a member of a complete gang is not evaluated")
	}
}
