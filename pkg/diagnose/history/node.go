package history

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// maxIdle is how many nodes without a member are shown: those where one could go are what matters.
const maxIdle = 48

// Node is a node, with what is on it.
type Node struct {
	Name string `json:"name"`
	// States are Ready or NotReady, then Cordoned and Deleting; nil for a node that could not be seen.
	States []string `json:"states,omitempty"`
	Taints []string `json:"taints,omitempty"`
	// Members are those on the node, in their order.
	Members []string `json:"members"`
	// Devices are its accelerators by kind.
	Devices []Devices `json:"devices"`
}

// Devices are the accelerators of one kind on one node.
type Devices struct {
	Kind corev1.ResourceName `json:"kind"`
	// Consumers are who uses how many, this gang's members first; the rest is Free or, if no pod can get it now, Idle.
	Consumers []Consumer `json:"consumers"`
	Free      int64      `json:"free"`
	Idle      int64      `json:"idleUnusable"`
	Unhealthy int64      `json:"unhealthy"`
	// Why is why idle ones cannot be used; empty if they can.
	Why   string `json:"why,omitempty"`
	Total int64  `json:"total"`
}

// Consumer holds accelerators.
type Consumer struct {
	// Member is set for a member of this gang, and Other names anybody else.
	Member string `json:"member,omitempty"`
	Other  string `json:"other,omitempty"`
	Amount int64  `json:"amount"`
}

// nodes are those with members, in the order of these, then those with accelerators, the emptiest first; and how many are left out.
func nodes(w *view.View, g *gang.Gang) (all []Node, left int) {
	on := map[string][]gang.Member{}
	for _, m := range g.Members {
		if m.Pod != nil && m.Bound() {
			on[m.Pod.Spec.NodeName] = append(on[m.Pod.Spec.NodeName], m)
		}
	}
	var with, without []Node
	for _, n := range usage.OfNodes(w).Nodes {
		node := placed(n, g, on[n.Name])
		delete(on, n.Name)
		switch {
		case len(node.Members) > 0:
			with = append(with, node)
		case len(node.Devices) > 0:
			without = append(without, node)
		default:
			left++
		}
	}
	for name, members := range on { // of nodes that are gone, or could not be seen
		with = append(with, placed(usage.Node{Name: name}, g, members))
	}
	at := make(map[string]int, len(g.Members))
	for i, m := range slices.Backward(g.Members) { // of two the first counts
		at[m.Name()] = i
	}
	slices.SortFunc(with, func(a, b Node) int { return cmp.Compare(at[a.Members[0]], at[b.Members[0]]) })
	slices.SortStableFunc(without, func(a, b Node) int { return cmp.Compare(b.free(), a.free()) })
	if len(without) > maxIdle {
		left += len(without) - maxIdle
		without = without[:maxIdle]
	}
	return append(with, without...), left
}

func (n Node) free() int64 {
	var free int64
	for _, d := range n.Devices {
		free += d.Free
	}
	return free
}

// placed is a node with the members on it.
func placed(n usage.Node, g *gang.Gang, members []gang.Member) Node {
	node := Node{Name: n.Name, States: n.States, Taints: n.Taints, Members: []string{}, Devices: []Devices{}}
	for _, m := range members {
		node.Members = append(node.Members, m.Name())
	}
	self := g.Kind.Kind + " " + g.Name()
	for _, d := range n.Devices {
		sick := min(d.Unhealthy, d.Idle) // a device in use shows its consumer
		out := Devices{Kind: d.Kind, Consumers: []Consumer{}, Free: d.Free, Idle: max(0, d.Idle-d.Free-sick), Unhealthy: sick, Total: d.Total}
		own := int64(0)
		for _, m := range members {
			if n := request.OfResource(m.Pod, d.Kind); n > 0 {
				out.Consumers = append(out.Consumers, Consumer{Member: m.Name(), Amount: n})
				own += n
			}
		}
		for _, s := range d.Shares {
			if s.Consumer == self {
				s.Amount -= own // pods of the job that are no members any more
			}
			if s.Amount > 0 {
				out.Consumers = append(out.Consumers, Consumer{Other: s.Consumer, Amount: s.Amount})
			}
		}
		for _, u := range d.Unusable {
			if u.Reason != usage.ReasonUnhealthy && out.Why == "" {
				out.Why = u.Reason
			}
		}
		node.Devices = append(node.Devices, out)
	}
	return node
}
