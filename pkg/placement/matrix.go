package placement

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Violation is one constraint by which a node rejects a pod.
type Violation struct {
	// Constraint is the rule.
	Constraint Constraint
	// Resource is what is short; empty for a rule that is not about an amount.
	Resource corev1.ResourceName
	// Requested, Available and Total are what the pod requests, what is left of the node, and what the node has in all
	// (allocatable), in the unit of Quantity. Available is negative on an overcommitted node.
	Requested, Available, Total int64
	// Detail names the label, taint, port, claim or term, for people. Its wording is not stable.
	Detail string
}

// Never reports whether the pod requests more than the whole node has.
func (v Violation) Never() bool { return v.Resource != "" && v.Requested > v.Total }

// Row is the verdict of one node.
type Row struct {
	// Node is the name of the node.
	Node string
	// Violations are all constraints that reject the pod, in the order of Matrix.Constraints; empty if the node takes it.
	Violations []Violation
	// Undecided reports that the devices which the pod claims were not looked for on this node in time: it may take the pod or not.
	Undecided bool

	mask uint64
}

// Usable reports whether the pod may use the node: nothing but the load of the node keeps it off.
func (r Row) Usable() bool {
	return !slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Constraint.Static() })
}

// Matrix has every constraint of every node for one pod, each evaluated independently of the others.
type Matrix struct {
	// Rows are the nodes, ordered by name.
	Rows []Row
	// Constraints are the ones that reject the pod somewhere, in a fixed order.
	Constraints []Constraint
	// Unmodelled names what the pod requests and this package does not model, ordered.
	Unmodelled []string

	rejects map[Constraint]int // how many violations of each the rows have
}

// devicesUndecided names devices for which the search was not ended in time.
const devicesUndecided = "devices that take too long to be looked for"

// Matrix evaluates a pod that has no node yet against every node: as if its claims had none of the devices that no pod uses.
func (c *Cluster) Matrix(pod *corev1.Pod) Matrix {
	return c.MatrixWithin(context.Background(), pod)
}

// MatrixWithin evaluates a pod as Matrix does. The nodes on which the devices that it claims have not been looked for when ctx ends are undecided,
// and Unmodelled names that.
func (c *Cluster) MatrixWithin(ctx context.Context, pod *corev1.Pod) Matrix {
	ctx, cancel := context.WithTimeout(ctx, DefaultBudget)
	defer cancel()
	c = c.released(pod)
	r := c.matrixRules(ctx, pod)
	m := Matrix{Rows: make([]Row, 0, len(c.nodes)), Unmodelled: r.unmodelled}
	for _, n := range c.nodes {
		m.Rows = append(m.Rows, r.row(n))
	}
	if !m.Decided() {
		m.note(devicesUndecided)
	}
	if more := len(r.absent) - maxNamed; more > 0 {
		m.note(fmt.Sprintf("%d more resources that no node has", more))
	}
	m.mask()
	return m
}

// MatrixLike evaluates a pod as Matrix does, on a cluster that is [Cluster.Derived] from the one of m, which has what becomes of a pod like that there: only the nodes
// that differ are looked at. ok is false where more decides than a node and its pods.
func (c *Cluster) MatrixLike(m Matrix, pod *corev1.Pod) (like Matrix, ok bool) {
	r := c.matrixRules(context.Background(), pod)
	if r.wide || len(c.interPodChecks(r)) > 0 {
		return Matrix{}, false
	}
	rejects := maps.Clone(m.rejects)
	m.Rows = slices.Clone(m.Rows)
	for at := range c.differs {
		for _, v := range m.Rows[at].Violations {
			rejects[v.Constraint]--
		}
		m.Rows[at] = r.row(c.nodes[at])
		for _, v := range m.Rows[at].Violations {
			rejects[v.Constraint]++
		}
	}
	maps.DeleteFunc(rejects, func(_ Constraint, n int) bool { return n == 0 })
	if len(rejects) != len(m.Constraints) || slices.ContainsFunc(m.Constraints, func(c Constraint) bool { return rejects[c] == 0 }) {
		m.mask()
		return m, true
	}
	m.rejects = rejects
	bit := m.bits()
	for at := range c.differs {
		m.Rows[at].order(bit)
	}
	return m, true
}

// matrixRules are all rules of a pod.
func (c *Cluster) matrixRules(ctx context.Context, pod *corev1.Pod) *rules {
	r := c.rules(ctx, pod, nil)
	r.checks = append(r.checks, c.interPodChecks(r)...)
	return r
}

// row evaluates every rule for a node.
func (r *rules) row(n *node) Row {
	r.undecided = false
	row := Row{Node: n.obj.Name, Violations: r.violations(n)}
	row.Undecided = r.undecided
	return row
}

// mask lists the constraints, brings those of each row into their order, and marks there which reject the pod.
func (m *Matrix) mask() {
	m.rejects = map[Constraint]int{}
	for _, row := range m.Rows {
		for _, v := range row.Violations {
			m.rejects[v.Constraint]++
		}
	}
	m.Constraints = slices.SortedFunc(maps.Keys(m.rejects), compareConstraints)
	bit := m.bits()
	for i := range m.Rows {
		m.Rows[i].order(bit)
	}
}

// bits are the bits of the constraints in the masks of rows.
func (m *Matrix) bits() map[Constraint]int {
	bit := make(map[Constraint]int, len(m.Constraints))
	for i, constraint := range m.Constraints {
		bit[constraint] = min(i, 63) // a mask is only short of bits with dozens of resources
	}
	return bit
}

// order brings the violations of a row into the order of the constraints, and marks these.
func (r *Row) order(bit map[Constraint]int) {
	r.mask = 0
	for _, v := range r.Violations {
		r.mask |= 1 << bit[v.Constraint]
	}
	slices.SortStableFunc(r.Violations, func(a, b Violation) int { return cmp.Compare(bit[a.Constraint], bit[b.Constraint]) })
}

// Decided reports whether it is known of every node whether it takes the pod.
func (m Matrix) Decided() bool {
	return !slices.ContainsFunc(m.Rows, func(r Row) bool { return r.Undecided })
}

// note adds to what is not modelled.
func (m *Matrix) note(text string) {
	m.Unmodelled = append(slices.Clone(m.Unmodelled), text)
	slices.Sort(m.Unmodelled)
}

// Eligible returns the nodes that take the pod.
func (m Matrix) Eligible() []string {
	var out []string
	for _, r := range m.Rows {
		if r.mask == 0 && !r.Undecided {
			out = append(out, r.Node)
		}
	}
	return out
}

// Usable returns the nodes that the pod may use, whether or not they take it now.
func (m Matrix) Usable() []string {
	var out []string
	for _, r := range m.Rows {
		if r.Usable() {
			out = append(out, r.Node)
		}
	}
	return out
}

// Nearest returns the rows of the nodes that reject the pod and are nearest to taking it: no other rejects it only by a part of the same constraints. What
// keeps it off the others is no reason: they lack more than a nearer node does. Nodes that are too small for the pod count only where all are.
func (m Matrix) Nearest() []Row {
	var masks []uint64
	rejects := func(r Row) bool { return r.mask != 0 }
	tooSmall := func(r Row) bool { return slices.ContainsFunc(r.Violations, Violation.Never) }
	large := slices.ContainsFunc(m.Rows, func(r Row) bool { return rejects(r) && !tooSmall(r) })
	counts := func(r Row) bool { return rejects(r) && (!large || !tooSmall(r)) }
	for _, r := range m.Rows {
		if counts(r) && !slices.Contains(masks, r.mask) {
			masks = append(masks, r.mask)
		}
	}
	return slices.DeleteFunc(slices.Clone(m.Rows), func(r Row) bool {
		return !counts(r) || slices.ContainsFunc(masks, func(other uint64) bool { return other != r.mask && other&r.mask == other })
	})
}

// Rejected returns the nodes that reject the pod by a constraint, whatever else they reject it by.
func (m Matrix) Rejected(by Constraint) []string {
	want := m.maskOf(by)
	return m.names(func(mask uint64) bool { return want != 0 && mask&want != 0 })
}

// Row returns the row of a node, and whether there is one.
func (m Matrix) Row(node string) (Row, bool) {
	i, ok := slices.BinarySearchFunc(m.Rows, node, func(r Row, name string) int { return cmp.Compare(r.Node, name) })
	if !ok {
		return Row{}, false
	}
	return m.Rows[i], true
}

func (m Matrix) maskOf(set ...Constraint) uint64 {
	var mask uint64
	for _, c := range set {
		if i := slices.Index(m.Constraints, c); i >= 0 {
			mask |= 1 << i
		}
	}
	return mask
}

func (m Matrix) names(match func(uint64) bool) []string {
	var out []string
	for _, r := range m.Rows {
		if match(r.mask) {
			out = append(out, r.Node)
		}
	}
	return out
}

// OnlyBlocker returns the nodes that would take the pod if this one constraint did not count.
func (m Matrix) OnlyBlocker(c Constraint) []string { return m.Relaxed(c) }

// Relaxed returns the nodes that would take the pod if all these constraints did not count, and which reject it by every
// one of them: the nodes for which the set is exactly what has to go.
func (m Matrix) Relaxed(set ...Constraint) []string {
	want := m.maskOf(set...)
	if want == 0 || bits.OnesCount64(want) != len(set) {
		return nil
	}
	return m.names(func(mask uint64) bool { return mask == want })
}
