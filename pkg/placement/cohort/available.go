package cohort

// quota returns the quota of a node with what its children lend it, and the part of it that the node keeps for itself: what its
// lending limit does not lend. In Kueue these are the subtree quota and the local quota.
func (n *node) quota(at flavorResource, depth int) (subtree, local int64) {
	q := n.quotas[at]
	subtree = q.nominal
	if depth < maxDepth {
		for _, child := range n.children {
			whole, own := child.quota(at, depth+1)
			subtree += whole - own
		}
	}
	if q.lendingLimit != nil {
		local = max(0, subtree-*q.lendingLimit)
	}
	return subtree, local
}

// usageAt returns the usage of a node: its own, and that of its children beyond their local quotas.
func (n *node) usageAt(at flavorResource, depth int) int64 {
	used := n.usage[at]
	if depth < maxDepth {
		for _, child := range n.children {
			_, local := child.quota(at, depth+1)
			used += max(0, child.usageAt(at, depth+1)-local)
		}
	}
	return used
}

// available returns what a node may use now in addition to its usage: of its own quota, and of what is available to its parent, up
// to its borrowing limit. It is negative where the usage exceeds the quota.
func (n *node) available(at flavorResource, depth int) int64 {
	subtree, local := n.quota(at, 0)
	used := n.usageAt(at, 0)
	if n.parent == nil || depth >= maxDepth {
		return subtree - used
	}
	above := n.parent.available(at, depth+1)
	if limit := n.quotas[at].borrowingLimit; limit != nil {
		above = min(above, subtree-local-max(0, used-local)+*limit)
	}
	return max(0, local-used) + above
}

// potential returns what is available to a node in a tree without usage.
func (n *node) potential(at flavorResource, depth int) int64 {
	subtree, local := n.quota(at, 0)
	if n.parent == nil || depth >= maxDepth {
		return subtree
	}
	potential := local + n.parent.potential(at, depth+1)
	if limit := n.quotas[at].borrowingLimit; limit != nil {
		potential = min(potential, subtree+*limit)
	}
	return potential
}
