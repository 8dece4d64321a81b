package aging

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/placement"
)

// Kept is what a reservation keeps free on one node at this moment.
type Kept struct {
	Node string
	// Pod asks for that much.
	Pod *corev1.Pod
	// For is the gang.
	For types.NamespacedName
	// Why is what those are told who are kept out.
	Why string
}

// KeptFrom is what no member of a gang may use now: the reserved places, less
// what those still use who have to leave them. members are one of each kind; a
// reservation that binds only some of them is left to the filter. Only the engine's scheduling
// goroutine may call it.
func (k *Keeper) KeptFrom(group types.NamespacedName, members []*corev1.Pod) ([]Kept, error) {
	held := k.Held()
	if len(held) == 0 || k.partly(group) {
		return nil, nil
	}
	cluster, err := k.view.Cluster(nil)
	if err != nil {
		return nil, err
	}
	var all []Kept
	for _, r := range held {
		if r.Group == group || slices.ContainsFunc(members, func(p *corev1.Pod) bool { return !r.binds(p, k.clock.Now()) }) {
			continue
		}
		for _, node := range slices.Sorted(maps.Keys(r.Nodes)) {
			all = append(all, Kept{Node: node, Pod: r.Nodes[node].kept(cluster.PodsOn(node)), For: r.Group, Why: r.reason()})
		}
	}
	return all, nil
}

// KeptFor returns the names of the nodes that are reserved for a gang.
func (k *Keeper) KeptFor(group types.NamespacedName) []string {
	for _, r := range k.Held() {
		if r.Group == group {
			return slices.Sorted(maps.Keys(r.Nodes))
		}
	}
	return nil
}

// partly tells whether a gang has places, and fewer than it needs. It may complete
// itself on reserved nodes: what it has is of no use to anybody until then, and the
// gang that the places are for may wait for its end.
func (k *Keeper) partly(group types.NamespacedName) bool {
	k.mu.Lock()
	source := k.source
	k.mu.Unlock()
	return source != nil && group.Name != "" && source.Partly(group)
}

// binds tells whether a pod has to leave the reserved places alone.
func (r *Reservation) binds(pod *corev1.Pod, now time.Time) bool {
	if priority(pod) > r.Priority {
		return false
	}
	limit, ok := limitOf(pod)
	return !ok || r.Start.IsZero() || now.Add(limit).After(r.Start)
}

// kept is a pod that asks for what the members need beyond what those use who
// have to leave.
func (p Place) kept(running []*corev1.Pod) *corev1.Pod {
	sum := corev1.ResourceList{}
	for _, member := range p.Members {
		for name, q := range placement.Request(member) {
			total := sum[name]
			total.Add(q)
			sum[name] = total
		}
	}
	for _, pod := range running {
		if !p.Leaving[pod.UID] {
			continue
		}
		for name := range sum {
			rest := sum[name]
			rest.Sub(placement.Request(pod)[name])
			if rest.Sign() < 0 {
				rest = resource.Quantity{}
			}
			sum[name] = rest
		}
	}
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "reserved", Resources: corev1.ResourceRequirements{Requests: sum}}}}}
}
