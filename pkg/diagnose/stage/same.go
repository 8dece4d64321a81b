package stage

import (
	"slices"

	"github.com/gangctl/gangctl/pkg/placement"
)

// Gangs of which members are on their way out, or have a node, look at clusters of their own: those that are common, but for the pods of a few nodes. Most of what they find
// is what any gang of their shape finds on the common one, and is not looked for again.

// liftable are the constraints of nodes that may be the cause why a gang has no place: without them other nodes may be used.
func liftable() placement.Constraints {
	return placement.Constraints{}.Insert(placement.NodeSelector, placement.NodeAffinity, placement.Taint)
}

// same is the common cluster on which the gang finds the same as on one, if some constraints do not count: that cluster, or the one that it is derived from, if
// no member may use the nodes that differ. It is nil where there is none.
func (c *Context) same(cluster *placement.Cluster, ignored placement.Constraints) *placement.Cluster {
	if c.View.IsCommon(cluster) {
		return cluster
	}
	from, nodes := c.derived(cluster)
	if from == nil {
		return nil
	}
	for _, role := range c.Request.Roles {
		m, ignored := c.MatrixOn(from, role), ignored.Union(role.Ignore)
		closed := func(v placement.Violation) bool { return v.Constraint.Static() && !ignored.Has(v.Constraint) }
		for _, node := range nodes {
			if row, _ := m.Row(node); !slices.ContainsFunc(row.Violations, closed) {
				return nil
			}
		}
	}
	return from
}

// derived is the common cluster that one is but for the pods of some nodes, and the names of these, for a gang of a shape whose members have to do with nothing but nodes and
// what is free there; nil for any other.
func (c *Context) derived(cluster *placement.Cluster) (from *placement.Cluster, nodes []string) {
	if c.Request.Shape == "" || !c.Request.Topology.Empty() || slices.ContainsFunc(c.Request.Roles, func(r placement.Role) bool { return len(r.Pod.Spec.ResourceClaims) > 0 }) {
		return nil, nil
	}
	if from, nodes = cluster.Derived(); from == nil || !c.View.IsCommon(from) {
		return nil, nil
	}
	return from, nodes
}

// fitBesides is a placement of all members that gangs of this shape find on the cluster that another one is derived from, on nodes where that is the same; ok is false if there is none. That
// the cluster as it is has another one first, which is the one to be shown, is possible.
func (c *Context) fitBesides(cluster *placement.Cluster, ignore placement.Constraints) (found placement.Result, ok bool) {
	from, nodes := c.derived(cluster)
	if from == nil || cluster == c.Cluster() {
		return placement.Result{}, false
	}
	if found = c.Fit(from, ignore); !found.Fits() {
		return placement.Result{}, false
	}
	for _, r := range c.Request.Roles {
		if found.Placed[r.Name] < r.Count {
			return placement.Result{}, false
		}
	}
	return found, !slices.ContainsFunc(found.Placement, func(a placement.Assignment) bool { return slices.Contains(nodes, a.Node) })
}
