package e2e

import (
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
