package agreement

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/sandbox/kubelet"
	"github.com/gangctl/gangctl/sandbox/node"
)

// nodes makes from 2 to 9 nodes of a few shapes.
func (g *generator) nodes() {
	shapes := make([]shape, g.between(1, 3))
	for i := range shapes {
		shapes[i] = g.shape()
	}
	zones := g.between(1, 3)
	for i := range g.between(2, 9) {
		n := g.node(fmt.Sprintf("s%d-n%d", g.s.Seed, i), pick(g, shapes...))
		if !g.once(8) {
			n.Labels[zoneLabel] = fmt.Sprintf("z%d", g.IntN(zones))
		}
		if !g.once(4) {
			n.Labels[rackLabel] = fmt.Sprintf("r%d", g.IntN(4))
		}
		n.Labels[poolLabel] = pick(g, "a", "b")
		n.Labels["gen"] = fmt.Sprint(g.IntN(4))
		g.s.Nodes = append(g.s.Nodes, n)
		g.spare[n.Name] = map[corev1.ResourceName]int64{}
		for name, q := range n.Status.Allocatable {
			g.spare[n.Name][name] = q.MilliValue()
		}
	}
}

type shape struct{ cpu, memory, gpus, nics, pods int }

func (g *generator) shape() shape {
	s := shape{cpu: pick(g, 2, 4, 8, 16), memory: pick(g, 4, 8, 16, 32), gpus: pick(g, 0, 2, 4, 8), pods: 110}
	if g.once(4) {
		s.nics = g.between(1, 2)
	}
	if g.once(4) {
		s.pods = g.between(3, 6)
	}
	return s
}

// node makes a node of a shape, and something may be wrong with it.
func (g *generator) node(name string, s shape) *corev1.Node {
	n := node.Machine{KubernetesVersion: "v1.37.1"}.New(name, node.Shape{
		CPU: whole(s.cpu), Memory: gibi(s.memory), GPUs: int64(s.gpus), GPUResource: string(gpu),
	}, time.Time{})
	if s.nics > 0 {
		n.Status.Capacity[nic], n.Status.Allocatable[nic] = whole(s.nics), whole(s.nics)
	}
	n.Status.Capacity[corev1.ResourcePods], n.Status.Allocatable[corev1.ResourcePods] = whole(s.pods), whole(s.pods)
	n.Status.Allocatable[corev1.ResourceCPU] = milli(s.cpu*1000 - pick(g, 0, 0, 100, 500))
	if s.gpus > 0 && g.once(8) { // a device is broken
		n.Status.Allocatable[gpu] = whole(s.gpus - 1)
	}
	switch g.IntN(12) {
	case 0:
		n.Spec.Unschedulable = true
	case 1:
		n.Labels[kubelet.FailedLabel] = "true"
		at := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
		n.Status.Conditions[at] = kubelet.FailedCondition(time.Time{})
	case 2, 3:
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "dedicated", Value: pick(g, "infra", "team"), Effect: corev1.TaintEffectNoSchedule})
	case 4:
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: string(gpu), Value: "present", Effect: corev1.TaintEffectNoExecute})
	case 5:
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "spot", Effect: corev1.TaintEffectPreferNoSchedule})
	}
	return n
}

// failed reports whether a node's kubelet is dead.
func failed(n *corev1.Node) bool { return n.Labels[kubelet.FailedLabel] != "" }
