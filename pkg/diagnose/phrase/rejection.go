package phrase

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gangctl/gangctl/pkg/placement"
)

// Refusal is one reason for which nodes reject a pod, and the nodes.
type Refusal struct {
	Constraint placement.Constraint
	// Reason is the constraint with its detail, as [Rejection] has it; Detail is the detail alone. Of an amount, which differs from node to node, they are of the first node.
	Reason, Detail string
	Nodes          []string
}

// Refusals are why the nodes reject a pod that are nearest to taking it, by the constraints that match: those of one constraint with the most nodes first.
func Refusals(m placement.Matrix, match func(placement.Constraint) bool) []Refusal {
	type reason struct {
		constraint placement.Constraint
		detail     string
	}
	var all []Refusal
	at := map[reason]int{}
	for _, row := range m.Nearest() {
		for _, v := range row.Violations {
			key := reason{v.Constraint, v.Detail}
			if v.Resource != "" {
				key.detail = ""
			}
			switch i, known := at[key]; {
			case !match(v.Constraint):
			case known:
				if r := &all[i]; r.Nodes[len(r.Nodes)-1] != row.Node {
					r.Nodes = append(r.Nodes, row.Node)
				}
			default:
				at[key] = len(all)
				all = append(all, Refusal{v.Constraint, Rejection(m, v.Constraint, row.Node), v.Detail, []string{row.Node}})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Refusal) int {
		return cmp.Or(cmp.Compare(slices.Index(m.Constraints, a.Constraint), slices.Index(m.Constraints, b.Constraint)), cmp.Compare(len(b.Nodes), len(a.Nodes)))
	})
	return all
}

// maxRefusals is how many reasons a sentence can carry.
const maxRefusals = 6

// Rejections are the [Refusals], with counts, for who may not know the nodes. They read like: 2 nodes taint dedicated=infra:NoSchedule.
func Rejections(m placement.Matrix, match func(placement.Constraint) bool) (parts []string) {
	return EachRefusal(Refusals(m, match), func(r Refusal) string { return fmt.Sprintf("%s %s", Count(len(r.Nodes), "node"), r.Reason) })
}

// EachRefusal is a part of a sentence for each refusal, up to as many as that can carry.
func EachRefusal(all []Refusal, text func(Refusal) string) (parts []string) {
	for i, r := range all {
		if i == maxRefusals {
			return append(parts, fmt.Sprintf("%d other reasons", len(all)-i))
		}
		parts = append(parts, text(r))
	}
	return parts
}

// Rejection is why one node rejects a pod by a constraint.
func Rejection(m placement.Matrix, constraint placement.Constraint, node string) string {
	if constraint == placement.Deleting {
		return "being deleted"
	}
	row, _ := m.Row(node)
	for _, v := range row.Violations {
		if v.Constraint == constraint {
			if v.Detail != "" {
				return string(constraint) + " " + v.Detail
			}
			if v.Resource != "" {
				return fmt.Sprintf("%s %s of %s", v.Resource, Down(v.Resource, v.Available), Down(v.Resource, v.Total))
			}
		}
	}
	return string(constraint)
}
