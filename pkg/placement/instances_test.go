package placement

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
)

// instance is a random cluster with a random gang.
type instance struct {
	objects Objects
	gang    Gang
}

// randomAmounts makes a cluster and a gang whose members have no constraints between them: only amounts and taints count.
func randomAmounts(r *rand.Rand) instance {
	var w instance
	for i := range 1 + r.IntN(4) {
		has := amounts("cpu", 4+r.IntN(8), "memory", fmt.Sprintf("%dGi", 4+r.IntN(8)), "gpu", 2+r.IntN(8), "pods", 2+r.IntN(6))
		n := aNode(fmt.Sprint("n", i), has, label("zone", fmt.Sprint("z", r.IntN(2))))
		switch r.IntN(12) {
		case 0:
			taint("dedicated", "infra", corev1.TaintEffectNoSchedule)(n)
		case 1:
			cordoned(n)
		case 2:
			notReady(n)
		}
		w.objects.Nodes = append(w.objects.Nodes, n)
		for j := range r.IntN(3) {
			w.objects.Pods = append(w.objects.Pods, aPod(fmt.Sprint("b", i, j), amounts("cpu", r.IntN(3), "gpu", r.IntN(3)), on(n.Name)))
		}
	}
	left := 1 + r.IntN(6)
	for i := range 1 + r.IntN(3) {
		n := 1 + r.IntN(left)
		pod := aPod(fmt.Sprint("m", i), amounts("cpu", r.IntN(4), "memory", fmt.Sprintf("%dGi", r.IntN(4)), "gpu", r.IntN(5)))
		if r.IntN(4) == 0 {
			tolerating("dedicated")(pod)
		}
		if r.IntN(6) == 0 {
			selecting("zone", "z0")(pod)
		}
		if r.IntN(6) == 0 {
			hostPort(80)(pod)
		}
		w.gang.Roles = append(w.gang.Roles, Role{Name: fmt.Sprint("r", i), Count: int32(n), Pod: pod, Min: int32(r.IntN(n + 1))})
		if left -= n; left == 0 {
			break
		}
	}
	if r.IntN(3) == 0 {
		w.gang.MinMember = 1 + r.Int32N(w.gang.Total())
	} else if r.IntN(3) > 0 {
		for i := range w.gang.Roles {
			w.gang.Roles[i].Min = 0
		}
	}
	if r.IntN(5) == 0 {
		w.gang.Topology.Required = "zone"
	}
	return w
}

// randomInterPod makes a smaller cluster, and a gang with constraints between its members: affinity, anti-affinity, spread and ports.
func randomInterPod(r *rand.Rand) instance {
	var w instance
	for i := range 1 + r.IntN(4) {
		n := aNode(fmt.Sprint("n", i), amounts("cpu", 1+r.IntN(4), "pods", 2+r.IntN(4)), label("zone", fmt.Sprint("z", r.IntN(3))))
		if r.IntN(3) > 0 {
			label("rack", fmt.Sprint("k", r.IntN(2)))(n)
		}
		if r.IntN(8) == 0 {
			taint("dedicated", "infra", corev1.TaintEffectNoSchedule)(n)
		}
		w.objects.Nodes = append(w.objects.Nodes, n)
		if r.IntN(4) == 0 {
			p := aPod(fmt.Sprint("b", i), amounts("cpu", r.IntN(2)), on(n.Name), labelled("app", fmt.Sprint("r", r.IntN(3))))
			randomRule(r, p)
			w.objects.Pods = append(w.objects.Pods, p)
		}
	}
	left := 1 + r.IntN(5)
	for i := range 1 + r.IntN(3) {
		n := 1 + r.IntN(left)
		pod := aPod(fmt.Sprint("m", i), amounts("cpu", r.IntN(3)), labelled("app", fmt.Sprint("r", i)), labelled("job", "j"))
		for range r.IntN(3) {
			randomRule(r, pod)
		}
		w.gang.Roles = append(w.gang.Roles, Role{Name: fmt.Sprint("r", i), Count: int32(n), Pod: pod})
		if left -= n; left == 0 {
			break
		}
	}
	if r.IntN(4) == 0 {
		w.gang.MinMember = 1 + r.Int32N(w.gang.Total())
	}
	return w
}

func randomRule(r *rand.Rand, p *corev1.Pod) {
	key := []string{corev1.LabelHostname, "zone", "rack"}[r.IntN(3)]
	about := [][2]string{{"app", "r0"}, {"app", "r1"}, {"job", "j"}}[r.IntN(3)]
	switch r.IntN(5) {
	case 0:
		affineTo(key, about[0], about[1])(p)
	case 1, 2:
		apart(key, about[0], about[1])(p)
	case 3:
		spread(key, 1+r.Int32N(2), about[0], about[1])(p)
		c := &p.Spec.TopologySpreadConstraints[len(p.Spec.TopologySpreadConstraints)-1]
		if r.IntN(4) == 0 {
			two := int32(2)
			c.MinDomains = &two
		}
		if r.IntN(4) == 0 {
			honor := corev1.NodeInclusionPolicyHonor
			c.NodeTaintsPolicy = &honor
		}
	case 4:
		hostPort(80)(p)
	}
}

func describe(w instance) string {
	out := ""
	for _, n := range w.objects.Nodes {
		out += fmt.Sprintf("node %s %v cpu=%v mem=%v gpu=%v pods=%v taints=%v cordon=%t\n", n.Name, n.Labels, n.Status.Allocatable.Cpu(), n.Status.Allocatable.Memory(), n.Status.Allocatable[gpu], n.Status.Allocatable.Pods(), n.Spec.Taints, n.Spec.Unschedulable)
	}
	pod := func(p *corev1.Pod) string {
		text := fmt.Sprintf("%s labels=%v req=%v sel=%v ports=%v aff=%+v spread=%+v", p.Name, p.Labels, p.Spec.Containers[0].Resources.Requests, p.Spec.NodeSelector, p.Spec.Containers[0].Ports, p.Spec.Affinity, p.Spec.TopologySpreadConstraints)
		for _, v := range p.Spec.Volumes {
			text += " volume=" + v.Name
		}
		return text
	}
	for _, n := range w.objects.CSINodes {
		out += "limits of " + n.Name
		for _, d := range n.Spec.Drivers {
			if d.Allocatable != nil && d.Allocatable.Count != nil {
				out += fmt.Sprintf(" %s=%d", d.Name, *d.Allocatable.Count)
			}
		}
		out += "\n"
	}
	for _, a := range w.objects.VolumeAttachments {
		out += "attached " + a.Name + "\n"
	}
	for _, p := range w.objects.Pods {
		out += fmt.Sprintf("pod on %s %s\n", p.Spec.NodeName, pod(p))
	}
	for _, r := range w.gang.Roles {
		out += fmt.Sprintf("role %s x%d min %d %s\n", r.Name, r.Count, r.Min, pod(r.Pod))
	}
	return out + fmt.Sprintf("minMember %d topology %s", w.gang.MinMember, w.gang.Topology)
}
