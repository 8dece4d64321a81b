package planner

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Claim is room on a node that is kept for somebody: the place of a dead member, a reservation.
type Claim struct {
	// Node is the name of the node.
	Node string
	// Pod asks for what is kept: its requests, its host ports and one pod slot. It is not changed, and its names do not matter.
	Pod *corev1.Pod
	// For is the gang that it is kept for, by the name of its virtual PodGroup.
	For types.NamespacedName
	// Why reads like: held for the replacement of research/llama-3 (gang
	// research/llama) until 12:00:00 UTC. It changes only with the claim.
	Why string
}

// Claims tells what is kept from whom. The plugin that owns a claim also enforces it, as a filter: a plan that respects it is
// then accepted, and a gang that is impossible beside it is refused by the engine, too. Whoever lifts a claim calls
// Planner.Released.
type Claims interface {
	// KeptFrom returns what no member of a gang may use now. members are one of each kind. What binds only some of them is left
	// out; the filter will tell. It is called once for each plan, in the engine's scheduling goroutine.
	KeptFrom(group types.NamespacedName, members []*corev1.Pod) []Claim
	// KeptFor returns the names of the nodes on which room is kept for a gang: its members go there first.
	KeptFor(group types.NamespacedName) []string
}
