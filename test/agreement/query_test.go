package agreement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

func uid(p *corev1.Pod, namespace string) *corev1.Pod {
	p = p.DeepCopy()
	p.Namespace, p.UID = namespace, types.UID(namespace+"/"+p.Name)
	return p
}

// What is released in the snapshot is the gang, all of it, and nothing else; the snapshot itself stays.
func TestReleased(t *testing.T) {
	gated := named("g-0")
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gateName}}
	gated.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Reason: corev1.PodReasonSchedulingGated}}
	g := &Gang{Name: "g", Form: ByObject, Hold: Object, Min: 1, Pods: []*corev1.Pod{gated}}
	c := &fixture{namespace: "team"}
	before := &snapshot.Snapshot{Pods: []*corev1.Pod{uid(gated, "team"), uid(gated, "other")}}
	after, err := c.released(before, g)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range after.Pods {
		if held := len(p.Spec.SchedulingGates) > 0; held != (p.Namespace == "other") {
			t.Errorf("%s/%s is held: %t", p.Namespace, p.Name, held)
		}
	}
	if n := len(after.Custom[schedulerplugins.GVK().GroupKind()]); n != 1 {
		t.Errorf("%d PodGroups", n)
	}
	if len(before.Pods[0].Spec.SchedulingGates) == 0 || len(before.Custom) > 0 {
		t.Error("the snapshot was changed")
	}
}

func TestCurrent(t *testing.T) {
	now := metav1.Now()
	p := uid(named("p"), "team")
	bound, going, running := p.DeepCopy(), p.DeepCopy(), p.DeepCopy()
	bound.Spec.NodeName, going.DeletionTimestamp, running.Status.Phase = "n", &now, corev1.PodRunning
	nodes := []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}}
	for name, tc := range map[string]struct {
		snapshot snapshot.Snapshot
		want     bool
	}{
		"the same":              {snapshot.Snapshot{Nodes: nodes, Pods: []*corev1.Pod{p}}, true},
		"a pod is bound since":  {snapshot.Snapshot{Nodes: nodes, Pods: []*corev1.Pod{bound}}, false},
		"a pod goes":            {snapshot.Snapshot{Nodes: nodes, Pods: []*corev1.Pod{going}}, false},
		"a pod runs":            {snapshot.Snapshot{Nodes: nodes, Pods: []*corev1.Pod{running}}, false},
		"a pod is not seen yet": {snapshot.Snapshot{Nodes: nodes}, false},
		"a pod is seen still":   {snapshot.Snapshot{Nodes: nodes, Pods: []*corev1.Pod{p, uid(named("q"), "team")}}, false},
		"a node is not seen":    {snapshot.Snapshot{Pods: []*corev1.Pod{p}}, false},
	} {
		c := &fixture{s: Scenario{Nodes: nodes}}
		if got := c.current(&tc.snapshot, []corev1.Pod{*p}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestRests(t *testing.T) {
	nodes := []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "alive"}}, {ObjectMeta: metav1.ObjectMeta{Name: "dead", Labels: map[string]string{}}}}
	nodes[1].Labels["sandbox.gangctl.dev/failed"] = "true"
	on := func(node string, phase corev1.PodPhase) *corev1.Pod {
		p := podWithReason(node, "", "")
		p.Status.Phase = phase
		return p
	}
	now := metav1.Now()
	going := on("alive", corev1.PodRunning)
	going.DeletionTimestamp = &now
	for name, tc := range map[string]struct {
		r    Resident
		p    *corev1.Pod
		want bool
	}{
		"not there":            {Resident{}, nil, false},
		"starts":               {Resident{}, on("alive", corev1.PodPending), false},
		"runs":                 {Resident{}, on("alive", corev1.PodRunning), true},
		"never starts":         {Resident{}, on("dead", corev1.PodPending), true},
		"was refused":          {Resident{}, podWithReason("", corev1.PodReasonUnschedulable, "no"), true},
		"is not looked at yet": {Resident{}, podWithReason("", "", ""), false},
		"still runs":           {Resident{Ended: true}, on("alive", corev1.PodRunning), false},
		"has ended":            {Resident{Ended: true}, on("alive", corev1.PodSucceeded), true},
		"does not go yet":      {Resident{Terminating: true}, on("alive", corev1.PodRunning), false},
		"goes, and does not":   {Resident{Terminating: true}, going, true},
	} {
		if got := tc.r.rests(tc.p, nodes); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
