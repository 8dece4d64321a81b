package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAging checks that the scheduler starts a large gang though small pods keep
// coming (T05), and the control to starve it, or the test would prove nothing.
func TestAging(t *testing.T) {
	c := newSharedCluster(t, twoNodes(), "--native-gangs", "--operator=false")
	for name, after := range map[string]string{"aging": "6s", "off": "0s"} {
		t.Run(name, func(t *testing.T) {
			sched := startScheduler(t, c.DataDir, nil, map[string]string{"GangAging": fmt.Sprintf("{after: %s}", after)}, allNames)
			defer sched.stop()
			if after == "0s" {
				c.with(t, labelsWire(t)).starves(true)
				return
			}
			for _, w := range some("labels") {
				t.Run(w.name, func(t *testing.T) { c.with(t, w).starves(false) })
			}
			for _, w := range some("volcano") {
				t.Run("a minimum rises, "+w.name, func(t *testing.T) { c.with(t, w).minimumRises() })
			}
		})
	}
}

// starves keeps both nodes busy: every 300 ms a new pod comes and the oldest
// goes, for 18 s.
func (g team) starves(want bool) {
	t, c := g.t, g.cluster
	a := unused(t)
	prefix := a + "-s-"
	defer func() { g.sweep(t); g.drop(a) }()
	single := 0
	next := func() {
		pod := plain(fmt.Sprintf("%s%02d", prefix, single), "gang-scheduler", "1")
		single++
		c.create(t, pod)
	}
	for range 8 {
		next()
	}
	c.placed(t, prefix+"00", prefix+"07")
	g.defined()
	g.declare(a, 8)
	g.members(a, 8, 8)
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	turnedAway := false
	for range 60 {
		<-tick.C
		next()
		pods, err := c.client.CoreV1().Pods(space).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		oldest := ""
		for i := range pods.Items {
			pod := &pods.Items[i]
			if pod.Spec.NodeName != "" && strings.HasPrefix(pod.Name, prefix) && (oldest == "" || pod.Name < oldest) {
				oldest = pod.Name
			}
			turnedAway = turnedAway || strings.Contains(refusal(pod), "reserved for gang default/"+a+", which has waited since ")
		}
		if oldest != "" {
			c.kill(t, oldest)
		}
		if c.bound(t, g.names(a, 8)...) == 8 {
			break
		}
	}
	switch n := c.bound(t, g.names(a, 8)...); {
	case want && n != 0:
		t.Errorf("%d members of the gang started without aging: the test proves nothing", n)
	case !want && n != 8:
		t.Errorf("%d of 8 members started within 18s", n)
	case !want && !turnedAway:
		t.Error("nobody who was turned away was told for whom")
	}
}

// minimumRises: a gang of one raises its minimum whenever a pod leaves, as if it had lost a member. What leaves is reserved for a gang that waits.
func (g team) minimumRises() {
	t, c := g.t, g.cluster
	a := unused(t)
	raised, prefix := a+"-u", a+"-s-"
	defer func() { g.sweep(t); g.drop(a, raised) }()
	g.defined()
	g.declare(raised, 1)
	g.members(raised, 1, 1, func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{} })
	var singles []string
	next := func() {
		singles = append(singles, fmt.Sprintf("%s%02d", prefix, len(singles)))
		c.create(t, plain(singles[len(singles)-1], "gang-scheduler", "1"))
	}
	for range 8 {
		next()
	}
	c.placed(t, append(g.names(raised, 1), singles...)...)
	g.declare(a, 8)
	g.members(a, 8, 8)
	first := 0 // of those that have nodes
	leave := func() { c.kill(t, singles[first]); first++ }
	leave()
	next()
	eventually(t, "what leaves is reserved", func(ctx context.Context) bool {
		pod, err := c.client.CoreV1().Pods(space).Get(ctx, singles[len(singles)-1], metav1.GetOptions{})
		if err == nil && pod.Spec.NodeName != "" {
			leave()
			next()
		}
		return err == nil && strings.Contains(refusal(pod), "reserved for gang default/"+a)
	})
	for i := 1; first < len(singles)-1; i++ {
		g.setMinimum(raised, i+1, i)
		pod := plain(fmt.Sprintf("%s-%d", raised, i), g.scheduler, "1")
		g.setGroup(pod, raised, i+1)
		c.create(t, pod)
		rests(t, 300*time.Millisecond, func() string { return fmt.Sprint(c.bound(t, g.names(raised, i+1)...)) })
		leave()
	}
	c.placed(t, g.names(a, 8)...)
	if n := c.bound(t, g.names(raised, 8)...); n != 1 {
		t.Errorf("%d members of the gang whose minimum rises have nodes, want the one that had", n)
	}
}

// refusal is why a pod has no node.
func refusal(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Message
		}
	}
	return ""
}

// labelsWire is the dialect that needs no object.
func labelsWire(t *testing.T) wire {
	t.Helper()
	for _, w := range wires() {
		if strings.Contains(w.name, "labels") {
			return w
		}
	}
	t.Fatal("no dialect of labels")
	return wire{}
}
