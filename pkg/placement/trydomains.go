package placement

// tryDomains looks for a placement of the whole gang inside one domain of a key that some member's affinity is about: a quick way
// to what the search would find late.
func (t *task) tryDomains(sites []*site) packing {
	best := t.nothing()
	tried := map[int]bool{}
	for _, r := range t.far.affinity {
		if r == nil {
			continue
		}
		for _, key := range r.keys {
			if tried[key] {
				continue
			}
			tried[key] = true
			inside := make(map[int][]*site)
			for _, s := range sites {
				if d := t.far.domain[key][s.pos]; d >= 0 {
					inside[d] = append(inside[d], s)
				}
			}
			for d := range t.far.domains[key] {
				if len(inside[d]) == 0 || t.bound(inside[d]) != nil {
					continue
				}
				s := newSeeker(t, inside[d], t.nothing(), true)
				s.visit()
				if t.better(s.best.placed, best.placed) {
					best = s.best
				}
				if t.full(best.placed) || t.late {
					return best
				}
			}
		}
	}
	return best
}
