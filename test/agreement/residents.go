package agreement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// residents puts pods on nodes, and leaves some to the scheduler.
func (g *generator) residents() {
	for _, n := range g.s.Nodes {
		for range g.IntN(4) {
			p := g.resident(len(g.s.Residents))
			if !g.take(n.Name, p) {
				continue
			}
			p.Spec.NodeName = n.Name
			p.Spec.Tolerations = []corev1.Toleration{{Key: string(gpu), Operator: corev1.TolerationOpExists}} // of the taint that evicts
			r := Resident{Pod: p}
			if !failed(n) {
				switch g.IntN(12) {
				case 0:
					r.Ended = true
				case 1:
					r.Terminating = true
				}
			}
			g.s.Residents = append(g.s.Residents, r)
		}
	}
	for range g.IntN(4) {
		p := g.resident(len(g.s.Residents))
		p.Spec.SchedulerName = schedulerName
		g.s.Residents = append(g.s.Residents, Resident{Pod: p})
	}
}

// resident makes a pod that other pods may want to be near to, or not.
func (g *generator) resident(i int) *corev1.Pod {
	p := g.pod(fmt.Sprintf("res%d", i))
	p.Labels["app"] = pick(g, "x", "y")
	p.Spec.PriorityClassName = pick(g, "", lowClass)
	setRequests(p, g.amounts(4))
	if g.once(8) {
		hostPort(p, 8080)
	}
	if g.once(8) {
		keepApart(p, pick(g, corev1.LabelHostname, zoneLabel), g.someSelector("", ""))
	}
	return p
}

// take charges a node with a pod; false if it does not fit.
func (g *generator) take(node string, p *corev1.Pod) bool {
	requests := p.Spec.Containers[0].Resources.Requests.DeepCopy()
	requests[corev1.ResourcePods] = whole(1)
	for name, q := range requests {
		if g.spare[node][name] < q.MilliValue() {
			return false
		}
	}
	for name, q := range requests {
		g.spare[node][name] -= q.MilliValue()
	}
	return true
}

// leavers are residents whose end may let a gang in.
func (g *generator) leavers() {
	for _, r := range g.s.Residents {
		if r.Pod.Spec.NodeName != "" && !r.Terminating && !r.Ended && g.once(3) {
			g.s.Leavers = append(g.s.Leavers, r.Pod.Name)
		}
	}
}
