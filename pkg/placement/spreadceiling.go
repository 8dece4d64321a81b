package placement

import (
	"math"
)

// least is the count that the skew is measured from.
func (r *spreadRule) least(counts []int) int {
	domains, least := 0, math.MaxInt32
	for d, n := range counts {
		if r.base[d] >= 0 {
			domains++
			least = min(least, n)
		}
	}
	if domains < r.min {
		return 0
	}
	return least
}

// ceiling is how many members of class i the rule lets onto the sites at most: no domain gets further ahead than the skew of the
// domain that stays behind most when everything that counts is filled in.
func (r *spreadRule) ceiling(f *far, sites []*site, i int) int64 {
	if !r.self || !r.match[i] {
		return math.MaxInt64
	}
	mine, filled := make([]int, len(r.base)), make([]int, len(r.base))
	for d := range filled {
		filled[d] = max(r.base[d], 0)
	}
	for _, s := range sites {
		d := f.domain[r.key][s.pos]
		if d < 0 {
			continue
		}
		mine[d] += s.slots[i]
		for b, counts := range r.match {
			if counts && r.counted[s.pos] {
				filled[d] += s.slots[b]
			}
		}
	}
	// Every pod of the gang counts at most once; more than all of them cannot be ahead.
	most := r.least(filled) + r.skew
	var sum int64
	for d := range mine {
		sum += int64(min(mine[d], max(0, most-max(r.base[d], 0))))
	}
	return sum
}
