package cohort

// quota returns the quota of a node with what its children lend it, and the part of it that the node keeps for itself: what its
// lending limit does not lend. In Kueue these are the subtree quota and the local quota.
func (n *node) quota(at flavorResource) (subtree, local int64) {
	if known, ok := n.whole[at]; ok {
		return known.subtree, known.local
	}
	if n.whole == nil {
		n.whole = map[flavorResource]wholeQuota{}
	}
	q := n.quotas[at]
	subtree = q.nominal
	for _, child := range n.children {
		whole, own := child.quota(at)
		subtree += whole - own
	}
	if q.lendingLimit != nil {
		local = max(0, subtree-*q.lendingLimit)
	}
	n.whole[at] = wholeQuota{subtree, local}
	return subtree, local
}

// wholeQuota is what [node.quota] returns.
type wholeQuota struct{ subtree, local int64 }

// use adds an amount to the usage of a node, and to that of those above what it is more beyond the local quota.
func (n *node) use(at flavorResource, amount int64) {
	for ; n != nil && amount != 0; n = n.parent {
		_, local := n.quota(at)
		before := n.usage[at]
		n.usage[at] = before + amount
		amount = max(0, before+amount-local) - max(0, before-local)
	}
}

// available returns what a node may use now in addition to its usage: of its own quota, and of what is available to its parent, up
// to its borrowing limit. It is negative where the usage exceeds the quota.
func (n *node) available(at flavorResource) int64 {
	subtree, local := n.quota(at)
	used := n.usage[at]
	if n.parent == nil {
		return subtree - used
	}
	above := n.parent.available(at)
	if limit := n.quotas[at].borrowingLimit; limit != nil {
		above = min(above, subtree-local-max(0, used-local)+*limit)
	}
	return max(0, local-used) + above
}

// potential returns what is available to a node in a tree without usage.
func (n *node) potential(at flavorResource) int64 {
	subtree, local := n.quota(at)
	if n.parent == nil {
		return subtree
	}
	potential := local + n.parent.potential(at)
	if limit := n.quotas[at].borrowingLimit; limit != nil {
		potential = min(potential, subtree+*limit)
	}
	return potential
}
