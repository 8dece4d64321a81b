package placement

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Proof is how sure a Result is, and of what.
type Proof string

// The kinds of proof. Only Witness means that the gang fits; CountingBound and Exhausted mean that it does not.
const (
	// Witness: Placement is a placement of the gang.
	Witness Proof = "witness"
	// CountingBound: there is none, and the numbers in Bound show it.
	CountingBound Proof = "countingBound"
	// Exhausted: there is none; every placement was ruled out.
	Exhausted Proof = "exhausted"
	// BudgetHit: none was found in time. This is not a proof: there may be one.
	BudgetHit Proof = "budgetHit"
)

// Assignment gives one member its node.
type Assignment struct {
	// Role is the name of the member's role.
	Role string
	// Member counts the members of the role from 0.
	Member int32
	// Node is the name of the node.
	Node string
}

// Bound is the arithmetic that proves that a gang does not fit.
type Bound struct {
	// Role is the role that is short of slots; empty if the gang as a whole is short of Resource or of slots.
	Role string
	// Resource is set if the sum over all usable nodes is too small, whatever the packing. Amounts are in the unit of
	// Quantity.
	Resource corev1.ResourceName
	// Need is how many members (or how much of Resource) the gang needs at least.
	Need int64
	// Have is how many slots (or how much of Resource) the usable nodes have.
	Have int64
	// Constraint is the rule that limits the slots of Role, if it is not amounts: PodAntiAffinity, HostPort, TopologySpread, …
	Constraint Constraint
	// Domain is the best domain of the required topology key, if the bound is that of a domain.
	Domain string
}

// Result is the answer of Place.
type Result struct {
	// Proof is how the answer was proved.
	Proof Proof
	// Placement is the witness, ordered by role as in the gang, then member. If the gang does not fit it is the largest part
	// of the gang for which a placement was found (it may be smaller than the largest there is if Proof is BudgetHit).
	Placement []Assignment
	// Sequence is Placement in an order in which the scheduler accepts one member after the other where they are to go. It is empty
	// if any order will do.
	Sequence []Assignment
	// Placed is the number of members in Placement by role; roles without any are there with 0.
	Placed map[string]int32
	// Bound has the numbers of a CountingBound, nil otherwise.
	Bound *Bound
	// Domain is the value of the topology key that Placement uses, the narrowest that the gang prefers or requires and that has room for it; or
	// of the topology keys of the affinity that ties all members to each other (joined by "/"). It is empty without either.
	Domain string
	// Level is the topology key that Domain is a value of; empty if it is of several, or there is none.
	Level string
	// Released are the ResourceClaims whose devices the scheduler takes from them for it: no pod uses these, and where they are there is no placement.
	Released []string
	// Unmodelled names what the pods request and this package does not model, ordered; empty if the model is complete.
	Unmodelled []string
	// Limit is the number of roles or members beyond which nothing is searched, as text; empty for a gang that has no more.
	Limit string
}

// Fits reports whether the gang has a placement.
func (r Result) Fits() bool { return r.Proof == Witness }

// Impossible reports whether it is proven that the gang has none.
func (r Result) Impossible() bool { return r.Proof == CountingBound || r.Proof == Exhausted }

// Pods returns the placement as pods that are bound to their nodes, for Cluster.With. Their names and UIDs are unique, and are not those of
// real pods.
func (r Result) Pods(g Gang) []*corev1.Pod {
	var out []*corev1.Pod
	for _, a := range r.Placement {
		i := slices.IndexFunc(g.Roles, func(role Role) bool { return role.Name == a.Role })
		out = append(out, member(g.Roles[i].Pod, a))
	}
	return out
}

// memberUID begins the UIDs of pods that stand for members.
const memberUID = "fit/"

// member makes the pod of an assignment: like the role's pod, but bound.
func member(like *corev1.Pod, a Assignment) *corev1.Pod {
	name := fmt.Sprintf("%s-%s-%d", like.Name, a.Role, a.Member)
	return StandIn(like, name, types.UID(memberUID+like.Namespace+"/"+name), a.Node)
}

// StandIn is a pod on a node like another. Where several stand for pods like one, each has a name of its own: volumes that are made for a pod are named after it,
// and count once by name.
func StandIn(like *corev1.Pod, name string, uid types.UID, node string) *corev1.Pod {
	p := *like
	p.Name, p.UID, p.Spec.NodeName, p.Status = name, uid, node, corev1.PodStatus{}
	return &p
}

// result numbers the members of a packing.
func (t *task) result(g Gang, a solution) Result {
	r := Result{Limit: t.limit, Proof: a.proof, Bound: a.bound, Domain: a.domain, Level: a.level, Placed: map[string]int32{}}
	for _, role := range g.Roles {
		r.Placed[role.Name] += 0
	}
	order := make([]int, len(a.packing.candidates))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int {
		return cmp.Compare(a.packing.candidates[x].n.obj.Name, a.packing.candidates[y].n.obj.Name)
	})
	for i, k := range t.roles {
		member := int32(0)
		for _, at := range order {
			for range a.packing.counts[at][i] {
				r.Placement = append(r.Placement, Assignment{Role: k.name, Member: member, Node: a.packing.candidates[at].n.obj.Name})
				member++
			}
		}
		r.Placed[k.name] += member
	}
	position := map[string]int{}
	for i, role := range g.Roles {
		position[role.Name] = i
	}
	slices.SortStableFunc(r.Placement, func(x, y Assignment) int { return cmp.Compare(position[x.Role], position[y.Role]) })
	r.Sequence = t.sequence(a.packing.path, r.Placement)
	return r
}

// sequence finds the members of a placement that the steps of its search stand for.
func (t *task) sequence(path []step, placement []Assignment) []Assignment {
	type spot struct{ role, node string }
	members := map[spot][]Assignment{}
	for _, a := range placement {
		at := spot{a.Role, a.Node}
		members[at] = append(members[at], a)
	}
	var out []Assignment
	for _, s := range path {
		at := spot{t.roles[s.role].name, s.candidate.n.obj.Name}
		out = append(out, members[at][0])
		members[at] = members[at][1:]
	}
	return out
}
