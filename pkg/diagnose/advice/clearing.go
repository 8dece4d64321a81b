package advice

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

const (
	// maxMoved is how many pods are moved at most.
	maxMoved = 4
	// maxPerNode is how many pods of one node are tried together.
	maxPerNode = 8
	// maxClearings is how many nodes are looked at closely, those that lack least first.
	maxClearings = 64
)

// clearing is a node that takes one member more when some of its pods are gone.
type clearing struct {
	node string
	pods []*corev1.Pod
	// size is how much of the device, or of the cpu, moves.
	size int64
}

// clearings are the nodes that become of use for one more member of a role by moving few pods, the fewest and smallest first.
// Only amounts count here: where another rule keeps members off, no pod that moves changes that.
func (s mover) clearings(role placement.Role) []clearing {
	request := podrequest.Of(role.Pod)
	name := podrequest.Device(request)
	if name == "" {
		name = corev1.ResourceCPU
	}
	var all []clearing
	for _, node := range s.lackingLeast(role, request) {
		if s.spent() {
			break
		}
		if pods := s.smallestSet(node.name, node.lack); pods != nil {
			c := clearing{node: node.name, pods: pods}
			for _, p := range pods {
				c.size += podrequest.Amount(name, podrequest.Of(p)[name])
			}
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b clearing) int {
		return cmp.Or(len(a.pods)-len(b.pods), cmp.Compare(a.size, b.size), strings.Compare(a.node, b.node))
	})
	return all
}

// lacking is a node and what it lacks for one member more.
type lacking struct {
	name string
	lack map[corev1.ResourceName]int64
	most int64
}

// lackingLeast are the nodes that members may use, with what they lack for one more, those that lack least first.
func (s mover) lackingLeast(role placement.Role, request corev1.ResourceList) []lacking {
	cluster := s.cluster()
	var all []lacking
	for _, row := range s.base.Matrices[role.Name].Rows {
		if slices.ContainsFunc(row.Violations, func(v placement.Violation) bool { return v.Resource == "" || v.Never() }) {
			continue
		}
		free := cluster.Free(row.Node)
		slots := int64(-1)
		for name, q := range request {
			if per := podrequest.Amount(name, q); per > 0 {
				n := max(0, podrequest.Amount(name, free[name])) / per
				if slots < 0 || n < slots {
					slots = n
				}
			}
		}
		n := lacking{name: row.Node, lack: map[corev1.ResourceName]int64{}}
		for name, q := range request {
			per := podrequest.Amount(name, q)
			if per <= 0 { // the scheduler does not look at what is not requested
				continue
			}
			if lack := per*(slots+1) - podrequest.Amount(name, free[name]); lack > 0 {
				n.lack[name] = lack
				n.most = max(n.most, lack*1000/per)
			}
		}
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b lacking) int { return cmp.Or(cmp.Compare(a.most, b.most), strings.Compare(a.name, b.name)) })
	return all[:min(maxClearings, len(all))]
}

// smallestSet are the fewest movable pods of a node that use at least so much; nil if none do.
func (s mover) smallestSet(node string, lack map[corev1.ResourceName]int64) []*corev1.Pod {
	type candidate struct {
		pod      *corev1.Pod
		requests corev1.ResourceList
		part     int64
	}
	var all []candidate
	for _, p := range s.w.Cluster().PodsOn(node) {
		if !s.movable(p, s.w.ConsumerOf(p)) || !s.permitted([]*corev1.Pod{p}) {
			continue
		}
		c := candidate{pod: p, requests: podrequest.Of(p)}
		for name, need := range lack {
			c.part += min(1000, podrequest.Amount(name, c.requests[name])*1000/need)
		}
		if c.part > 0 {
			all = append(all, c)
		}
	}
	// What gives just enough comes first: moving more than is needed needs more room elsewhere.
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.part, a.part) })
	all = all[:min(maxPerNode, len(all))]
	slices.Reverse(all)
	for size := 1; size <= min(maxMoved, len(all)); size++ {
		for set := range combinations(all, size) {
			enough := true
			for name, need := range lack {
				var sum int64
				for _, c := range set {
					sum += podrequest.Amount(name, c.requests[name])
				}
				enough = enough && sum >= need
			}
			if !enough {
				continue
			}
			pods := make([]*corev1.Pod, 0, size)
			for _, c := range set {
				pods = append(pods, c.pod)
			}
			return pods
		}
	}
	return nil
}
