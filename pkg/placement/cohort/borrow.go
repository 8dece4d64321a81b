package cohort

// quota is all that a node has with what is below it, of which kept cannot be lent.
func (n *node) quota(at cell, depth int) (all, kept int64) {
	s := n.shares[at]
	all = s.nominal
	if depth < deepest {
		for _, child := range n.children {
			whole, own := child.quota(at, depth+1)
			all += whole - own
		}
	}
	if s.lend != nil {
		kept = max(0, all-*s.lend)
	}
	return all, kept
}

// use is what is used of a node: by itself, and by what is below it beyond what that keeps for itself.
func (n *node) use(at cell, depth int) int64 {
	used := n.used[at]
	if depth < deepest {
		for _, child := range n.children {
			_, kept := child.quota(at, depth+1)
			used += max(0, child.use(at, depth+1)-kept)
		}
	}
	return used
}

// left is what a node may use now beyond what it uses: of its own, and of what those above it have left, up to its
// borrowing limit. It is negative where more is used than there is.
func (n *node) left(at cell, depth int) int64 {
	all, kept := n.quota(at, 0)
	used := n.use(at, 0)
	if n.parent == nil || depth >= deepest {
		return all - used
	}
	above := n.parent.left(at, depth+1)
	if limit := n.shares[at].borrow; limit != nil {
		above = min(above, all-kept-max(0, used-kept)+*limit)
	}
	return max(0, kept-used) + above
}

// most is what a node may use if nobody else uses anything.
func (n *node) most(at cell, depth int) int64 {
	all, kept := n.quota(at, 0)
	if n.parent == nil || depth >= deepest {
		return all
	}
	most := kept + n.parent.most(at, depth+1)
	if limit := n.shares[at].borrow; limit != nil {
		most = min(most, all+*limit)
	}
	return most
}
