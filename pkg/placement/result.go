package placement

import (
	corev1 "k8s.io/api/core/v1"
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
	// Proof tells what the answer is worth.
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
	// Domain is the value of the required topology key that Placement uses, or of the topology keys of the affinity that ties all
	// members to each other (joined by "/"); empty without either.
	Domain string
	// Unmodelled names what the pods ask for and this package does not model, ordered; empty if the model is complete.
	Unmodelled []string
}

// Fits tells whether the gang has a placement.
func (r Result) Fits() bool { return r.Proof == Witness }

// Impossible tells whether it is proven that the gang has none.
func (r Result) Impossible() bool { return r.Proof == CountingBound || r.Proof == Exhausted }
