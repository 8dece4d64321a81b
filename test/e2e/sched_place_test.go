package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// served are the names of other schedulers, under which their dialects' pods come.
const served = "--serve=volcano,kube-batch,scheduler-plugins-scheduler,koord-scheduler,kai-scheduler"

// TestSchedulerPlaces checks the scheduler's placement where other schedulers were reported to be wrong, on two nodes of 4 cpu
// and 8 GPUs.
func TestSchedulerPlaces(t *testing.T) {
	// A cluster of its own: the scheduler's log is read from its first line.
	c := newCluster(t, "--nodes=2", "--cpu=4", "--gpus=8", "--run-for=0", "--operator=false", "--native-gangs", served)
	for _, w := range some("scheduler-plugins", "labels") {
		t.Run(w.name, func(t *testing.T) {
			c.with(t, w).defined()
			t.Run("T02 two gangs", func(t *testing.T) { c.with(t, w).twoGangs() })
			t.Run("T03 hoarding", func(t *testing.T) { c.with(t, w).hoarding() })
			t.Run("T04 head of line", func(t *testing.T) { c.with(t, w).headOfLine() })
			t.Run("T26 packing trap", func(t *testing.T) { c.with(t, w).packingTrap() })
		})
	}
	for _, line := range c.log(t) {
		if strings.Contains(line, "forbidden") || strings.Contains(line, "Unauthorized") {
			t.Errorf("refused: %s", line)
		}
	}
}

// member makes a member of a gang that requests something.
func (g team) member(gang, name string, min int, requested corev1.ResourceName, amount string) {
	g.t.Helper()
	p := plain(name, g.scheduler, "100m")
	requests := &p.Spec.Containers[0].Resources
	requests.Requests[requested] = resource.MustParse(amount)
	if requested != corev1.ResourceCPU {
		requests.Limits = corev1.ResourceList{requested: resource.MustParse(amount)}
	}
	g.setGroup(p, gang, min)
	g.create(g.t, p)
}

// whole waits until so many pods, of those named, have nodes.
func (g team) whole(what string, count int, names ...string) time.Duration {
	g.t.Helper()
	start := time.Now()
	eventually(g.t, what, func(context.Context) bool { return g.bound(g.t, names...) == count })
	return time.Since(start)
}

func (g team) twoGangs() {
	a, b := g.wire.name+"-a", g.wire.name+"-b"
	defer func() { g.sweep(g.t); g.drop(a, b) }()
	usual := g.pace(g.t, g.scheduler)
	g.declare(a, 5)
	g.declare(b, 5)
	left, right := g.names(a, 5), g.names(b, 5)
	for i := range 5 {
		g.member(a, left[i], 5, "cpu", "1")
		g.member(b, right[i], 5, "cpu", "1")
	}
	took := g.whole("one gang has its nodes", 5, append(left, right...)...)
	if n := g.bound(g.t, left...); n != 0 && n != 5 || took > 3*time.Second+4*usual {
		g.t.Errorf("after %s gang a has %d nodes and gang b %d", took, n, g.bound(g.t, right...))
	}
	winner, other := left, right
	if g.bound(g.t, right...) == 5 {
		winner, other = right, left
	}
	for _, name := range winner {
		g.kill(g.t, name)
	}
	if took := g.whole("the other gang has its nodes", 5, other...); took > 5*time.Second+4*usual {
		g.t.Errorf("the other gang waited %s for the nodes of the first", took)
	}
}

func (g team) hoarding() {
	a, single := g.wire.name+"-nine", g.wire.name+"-single"
	defer func() { g.sweep(g.t); g.drop(a) }()
	usual := g.pace(g.t, g.scheduler)
	g.declare(a, 9)
	g.members(a, 9, 9)
	g.waitMessage(g.t, a+"-0", "8 of the 9 members that its gang needs fit")
	g.create(g.t, plain(single, "gang-scheduler", "1"))
	if took := g.whole("a single pod gets a node", 1, single); took > time.Second+4*usual {
		g.t.Errorf("a single pod waited %s beside a gang that cannot start", took)
	}
	if n := g.bound(g.t, g.names(a, 9)...); n != 0 {
		g.t.Errorf("%d members of a gang that does not fit have nodes", n)
	}
}

func (g team) headOfLine() {
	a, b := g.wire.name+"-large", g.wire.name+"-small"
	defer func() { g.sweep(g.t); g.drop(a, b) }()
	usual := g.pace(g.t, g.scheduler)
	g.declare(a, 9)
	g.members(a, 9, 9)
	g.declare(b, 3)
	g.members(b, 3, 3)
	if took := g.whole("the small gang has its nodes", 3, g.names(b, 3)...); took > 2*time.Second+4*usual {
		g.t.Errorf("a gang that fits waited %s behind one that does not", took)
	}
	for _, name := range g.names(a, 9) {
		g.waitMessage(g.t, name, "it needs 9 members with 1 cpu each, 9 in all, and the 2 nodes that it may use have 8 cpu in all")
	}
}

func (g team) packingTrap() {
	name := g.wire.name + "-trap"
	defer func() { g.sweep(g.t); g.drop(name) }()
	g.declare(name, 6)
	gpus := []int{4, 3, 3, 2, 2, 2} // a chief, two parameter servers, three workers
	names := g.names(name, len(gpus))
	for i, n := range gpus {
		g.member(name, names[i], 6, "nvidia.com/gpu", fmt.Sprint(n))
	}
	g.whole("all six members have nodes", 6, names...)
	used := map[string]int{}
	for i, n := range gpus {
		pod, err := g.client.CoreV1().Pods(space).Get(g.t.Context(), names[i], metav1.GetOptions{})
		must(g.t, err)
		used[pod.Spec.NodeName] += n
	}
	for node, n := range used {
		if n != 8 {
			g.t.Errorf("node %s has %d of its 8 GPUs in use", node, n)
		}
	}
}
