package placement

// packing is how many members of each class go to which site.
type packing struct {
	sites  []*site
	counts []pattern // one a site
	placed pattern   // sum by class
	path   []step    // the order in which members have to come, if that matters
}

// step is one member that comes to a site.
type step struct {
	site  *site
	class int
}

func (p packing) total() int {
	sum := 0
	for _, n := range p.placed {
		sum += n
	}
	return sum
}

// enough tells whether the placed members make the gang start.
func (t *task) enough(placed pattern) bool {
	sum := 0
	for i, n := range placed {
		if n < t.classes[i].min {
			return false
		}
		sum += n
	}
	return sum >= t.required
}

func (t *task) full(placed pattern) bool {
	for i, n := range placed {
		if n < t.classes[i].count {
			return false
		}
	}
	return true
}

// pack finds the largest part of the gang that fits on the sites if only what happens on each node matters, preferring
// parts that make the gang start. exact is false if the budget ended it.
//
// Nodes do not depend on each other here, so the numbers of members that fit on a set of nodes are the sums of what fits on
// each. pack builds these sums node by node: for all counts of the other classes, the largest count of the widest class.
func (t *task) pack(sites []*site) (best packing, exact bool) {
	if len(t.classes) == 0 {
		return t.nothing(), true
	}
	if len(t.classes) == 1 {
		return t.packOne(sites), true
	}
	sites = t.useful(sites)
	if p := t.greedy(sites); t.full(p.placed) {
		return p, true
	}
	table := newTable(t)
	if table == nil {
		return t.greedy(sites), false
	}
	byKind := map[int][]pattern{}
	for _, s := range sites {
		patterns, ok := byKind[s.kind]
		if !ok {
			patterns = t.patterns(s)
			byKind[s.kind] = patterns
		}
		if !table.add(patterns) {
			return t.greedy(sites), false
		}
		if table.complete() {
			break
		}
	}
	return table.best(sites), true
}

// useful leaves out sites beyond the number that the gang could use of each kind.
func (t *task) useful(sites []*site) []*site {
	members := 0
	for i := range t.classes {
		members += t.classes[i].count
	}
	seen := map[int]int{}
	var out []*site
	for _, s := range sites {
		if seen[s.kind]++; seen[s.kind] <= members {
			out = append(out, s)
		}
	}
	return out
}

// packOne fills the sites in order with one class; what is left for the last site goes to the one that it fills best.
func (t *task) packOne(sites []*site) packing {
	p := packing{placed: make(pattern, 1)}
	left := t.classes[0].count
	for at, s := range sites {
		if left == 0 {
			break
		}
		n := s.slots[0]
		if n >= left {
			for _, other := range sites[at+1:] {
				if other.slots[0] >= left && other.slots[0] < s.slots[0] && other.liked == s.liked {
					s = other
				}
			}
			n = left
		}
		p.sites = append(p.sites, s)
		p.counts = append(p.counts, pattern{n})
		left -= n
	}
	p.placed[0] = t.classes[0].count - left
	return p
}
