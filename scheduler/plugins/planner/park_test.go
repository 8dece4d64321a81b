package planner

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

func member(gang string, i int, amounts ...string) *corev1.Pod {
	return pod(fmt.Sprintf("%s-%d", gang, i), gang, amounts...)
}

// quiet fails if the engine tries a gang again, or writes anything, in a time in which it used to do so often.
func (r *rig) quiet(what string) {
	r.Helper()
	r.quietFor(300*time.Millisecond, what)
}

// quietFor is quiet for a time of the test's choice.
func (r *rig) quietFor(during time.Duration, what string) {
	r.Helper()
	attempts, writes := r.counted()
	for deadline := time.Now().Add(during); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if a, w := r.counted(); a != attempts || w != writes {
			r.Errorf("%s: %d attempts and %d writes", what, a-attempts, w-writes)
			return
		}
	}
}

// A gang that does not fit is tried again after an event that helps, and not before.
func TestParked(t *testing.T) {
	r := newRig(t)
	r.node("n1", "nvidia.com/gpu", "4")
	used := pod("used", "", "nvidia.com/gpu", "3")
	used.Spec.NodeName = "n1"
	idle := pod("idle", "", "cpu", "1")
	idle.Spec.NodeName = "n1"
	r.create(used, idle)
	poll.Until(r, "the engine knows the pods", func() bool { n, err := r.engine.Cache.PodCount(); return err == nil && n == 2 })
	r.gang("g", 2)
	r.create(member("g", 0, "nvidia.com/gpu", "2"), member("g", 1, "nvidia.com/gpu", "2"))
	reason := r.parked("g")
	if reason.Finding.Code != answer.NodesBusy || reason.Required != 2 || reason.Fit != 0 || len(reason.Shortages) != 1 {
		t.Errorf("reason %+v", reason)
	}
	r.quiet("nothing happens")

	r.delete("idle")
	poll.Until(r, "the engine knows that a pod is gone", func() bool { n, err := r.engine.Cache.PodCount(); return err == nil && n == 1 })
	r.quiet("a pod without GPU is gone")

	before := r.tried("g")
	r.delete("used")
	r.bound("g-0", "g-1")
	if n := r.tried("g"); n != before+1 {
		t.Errorf("%d attempts after room came free, want 1", n-before)
	}
	poll.Until(r, "a gang that runs is not reported to wait", func() bool { // members may be bound before the attempt ends
		_, waits := r.reasons.Get(types.NamespacedName{Namespace: "default", Name: "g"})
		return !waits
	})
}

func TestNodesHelp(t *testing.T) {
	r := newRig(t)
	n := r.node("n1", "nvidia.com/gpu", "1")
	r.gang("g", 2)
	r.create(member("g", 0, "nvidia.com/gpu", "2"), member("g", 1, "nvidia.com/gpu", "2"))
	r.parked("g")
	labelled := n.DeepCopy()
	labelled.Labels["new"] = "label"
	r.must(r.api.Update(corev1.SchemeGroupVersion.WithResource("nodes"), labelled, ""))
	r.quiet("a node gets a label, and GPUs are short")
	r.node("n2", "nvidia.com/gpu", "2")
	r.quiet("there are more GPUs, but not enough")
	r.node("n3", "nvidia.com/gpu", "2")
	r.bound("g-0", "g-1")
}

// A change of the gang itself wakes it at once.
func TestGangChanges(t *testing.T) {
	r := newRig(t)
	r.node("n1", "nvidia.com/gpu", "2")
	r.gang("g", 3)
	for i := range 3 {
		r.create(member("g", i, "nvidia.com/gpu", "1"))
	}
	r.parked("g")
	groups := r.client.SchedulingV1beta1().PodGroups("default")
	g, err := groups.Get(t.Context(), "g", metav1.GetOptions{})
	r.must(err)
	g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: "Seen", Status: metav1.ConditionTrue})
	g, err = groups.Update(t.Context(), g, metav1.UpdateOptions{})
	r.must(err)
	attempts := r.tried("g")
	for deadline := time.Now().Add(100 * time.Millisecond); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if n := r.tried("g"); n != attempts {
			t.Fatalf("%d attempts after a change of the group's status", n-attempts)
		}
	}
	g.Spec.SchedulingPolicy.Gang.MinCount = 2
	_, err = groups.Update(t.Context(), g, metav1.UpdateOptions{})
	r.must(err)
	poll.Until(r, "two of three get nodes", func() bool { return len(r.places()) == 2 })
}

// A gang whose members no longer have to share a rack is tried at once.
func TestGangMayBeApart(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"n1", "n2"} {
		r.node(name, "nvidia.com/gpu", "1")
	}
	r.gang("g", 2)
	groups := r.client.SchedulingV1beta1().PodGroups("default")
	g, err := groups.Get(t.Context(), "g", metav1.GetOptions{})
	r.must(err)
	g.Annotations = map[string]string{gang.TopologyRequired: corev1.LabelHostname}
	g, err = groups.Update(t.Context(), g, metav1.UpdateOptions{})
	r.must(err)
	r.create(member("g", 0, "nvidia.com/gpu", "1"), member("g", 1, "nvidia.com/gpu", "1"))
	r.parked("g")
	g.Annotations = nil
	_, err = groups.Update(t.Context(), g, metav1.UpdateOptions{})
	r.must(err)
	poll.Until(r, "both get nodes", func() bool { return len(r.places()) == 2 })
}

// A member that comes late may be one that fits.
func TestLateMember(t *testing.T) {
	r := newRig(t)
	r.node("n1", "nvidia.com/gpu", "4")
	r.gang("g", 2)
	r.create(member("g", 0, "nvidia.com/gpu", "3"), member("g", 1, "nvidia.com/gpu", "3"))
	r.parked("g")
	r.create(member("g", 2, "nvidia.com/gpu", "1"))
	poll.Until(r, "two of three get nodes", func() bool { return len(r.places()) == 2 })
	if r.places()["g-2"] == "" {
		t.Errorf("the small member has no node: %v", r.places())
	}
}

// A member may come when the engine has taken its gang from the queue, and the attempt has not begun.
func TestAMemberThatComesBeforeTheAttempt(t *testing.T) {
	popped, resume := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() {
		close(popped)
		select {
		case <-resume:
		case <-t.Context().Done():
		}
	})
	r := newRig(t, func(r *rig, _ *schedulerconfig.KubeSchedulerProfile) {
		r.popped = func(*framework.QueuedPodGroupInfo) { first() }
	})
	r.node("n1", "nvidia.com/gpu", "4")
	r.gang("g", 2)
	r.create(member("g", 0, "nvidia.com/gpu", "3"), member("g", 1, "nvidia.com/gpu", "3"))
	<-popped
	r.create(member("g", 2, "nvidia.com/gpu", "1"))
	poll.Until(r, "the member waits for the end of the attempt", func() bool {
		return slices.ContainsFunc(r.engine.SchedulingQueue.PendingPodGroupPods(), func(p *corev1.Pod) bool { return p.Name == "g-2" })
	})
	close(resume)
	r.bound("g-2")
}

// A gang may have another topology than it had when it was queued: that of the engine's snapshot counts.
func TestTheTopologyOfTheSnapshot(t *testing.T) {
	d := newFixture()
	group := func(topology gang.Topology) *schedulingv1beta1.PodGroup {
		return &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Annotations: topology.Annotations()}}
	}
	queued := &framework.QueuedPodGroupInfo{PodGroupInfo: &framework.PodGroupInfo{
		Namespace: "default", Name: "g", Type: fwk.PodGroupKeyType, PodGroup: group(gang.Topology{Required: "rack"}),
	}}
	d.begin(queued)
	queued.PodGroup = group(gang.Topology{Required: "zone"})
	if c := d.cycleOf(member("g", 0), DefaultArgs()); c == nil || c.topology.Required != "zone" {
		t.Errorf("attempt %+v", c)
	}
}

// Five gangs of a hundred that do not fit on 500 nodes cost nothing while nothing happens.
func TestWaitingCostsNothing(t *testing.T) {
	r := newRig(t)
	nodes, gangs, members := 500, 5, 100
	if testing.Short() {
		nodes, members = 50, 20
	}
	for i := range nodes {
		r.node(fmt.Sprintf("n%03d", i), "nvidia.com/gpu", "0")
	}
	for g := range gangs {
		r.gang(fmt.Sprint("g", g), int32(members))
		for i := range members {
			r.create(member(fmt.Sprint("g", g), i, "nvidia.com/gpu", "1"))
		}
	}
	for g := range gangs {
		r.parked(fmt.Sprint("g", g))
	}
	_, last := r.counted()
	since := time.Now()
	poll.Until(r, "everything is reported", func() bool {
		if _, writes := r.counted(); writes != last {
			last, since = writes, time.Now()
		}
		return time.Since(since) > 100*time.Millisecond
	})
	attempts, writes := r.counted()
	t.Logf("until they are parked: %d attempts, %d writes", attempts, writes)
	if attempts > 3*gangs {
		t.Errorf("%d attempts to find that %d gangs do not fit", attempts, gangs)
	}
	r.quietFor(3*time.Second, "while nothing happened") // the engine by itself tries each gang some hundred times
}
