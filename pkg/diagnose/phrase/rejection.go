package phrase

import (
	"fmt"

	"github.com/gangctl/gangctl/pkg/placement"
)

// Rejections are the constraints by which nodes reject a pod, of those that match, with counts. They read like: 2 nodes taint dedicated=infra:NoSchedule.
func Rejections(m placement.Matrix, match func(placement.Constraint) bool) (parts []string) {
	for _, constraint := range m.Constraints {
		if match(constraint) {
			nodes := m.Rejected(constraint)
			parts = append(parts, fmt.Sprintf("%s %s", Count(len(nodes), "node"), Rejection(m, constraint, nodes[0])))
		}
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
				return fmt.Sprintf("%s %s of %s", v.Resource, Quantity(v.Resource, v.Available), Quantity(v.Resource, v.Total))
			}
		}
	}
	return string(constraint)
}
