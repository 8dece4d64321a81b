package placement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/noderule"
	"github.com/gangctl/gangctl/pkg/placement"
)

// allowed names the nodes of a room. Where the gang would fit on nodes without the labels that it selects, these are named: the 2 nodes with
// class=h100.
func allowed(c *stage.Context, causes placement.Causes, r placement.Room) string {
	if instead(causes, placement.NodeSelector, r.Role) {
		return fmt.Sprintf("the %s with %s", phrase.Count(len(r.Nodes), "node"), noderule.DescribeRequirements(r.Role.Pod.Spec))
	}
	return phrase.Allowed(r, c.Gang.Meta.Name) + onceOpen(r.Role)
}

// onceOpen says of nodes that are counted though they are closed to a role what opens them, with a space before it: once it tolerates their taints. It is empty for nodes that are
// open.
func onceOpen(role placement.Role) string {
	var opens []string
	if role.Ignore.Has(placement.Taint) {
		opens = append(opens, "tolerates their taints")
	}
	if role.Ignore.Has(placement.NodeSelector) || role.Ignore.Has(placement.NodeAffinity) {
		opens = append(opens, "selects them")
	}
	if len(opens) == 0 {
		return ""
	}
	return " once it " + phrase.And(opens)
}

// instead reports whether the gang would fit if a constraint did not keep a role off nodes.
func instead(causes placement.Causes, constraint placement.Constraint, role placement.Role) bool {
	return slices.ContainsFunc(causes.Instead, func(cause placement.Cause) bool {
		return cause.Constraint == constraint && slices.ContainsFunc(cause.Roles, func(r placement.Role) bool { return r.Name == role.Name })
	})
}

// untolerated names the taints without which the gang would fit, each with the nodes that it keeps the role of a room off; empty if that would not help. Nodes that are
// too small, or that a rule closes as well, are left out where others are not.
func untolerated(c *stage.Context, cluster *placement.Cluster, causes placement.Causes, r placement.Room) string {
	if !instead(causes, placement.Taint, r.Role) {
		return ""
	}
	m := c.MatrixOn(cluster, r.Role)
	var nodes byReason
	tainted := m.OnlyBlocker(placement.Taint)
	if len(tainted) == 0 {
		tainted = m.Rejected(placement.Taint)
	}
	for _, name := range tainted {
		row, _ := m.Row(name)
		for _, v := range row.Violations {
			if v.Constraint == placement.Taint {
				nodes.add(v.Detail, name)
			}
		}
	}
	var parts []string
	for _, taint := range nodes.reasons {
		parts = append(parts, fmt.Sprintf("taint %s of %s", taint, phrase.Names(nodes.names[taint])))
	}
	return strings.Join(parts, ", ")
}
