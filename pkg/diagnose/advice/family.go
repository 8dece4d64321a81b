package advice

import (
	"slices"

	"github.com/gangctl/gangctl/pkg/cluster/view"
)

// family is any count of members.
type family struct {
	members []*view.Consumer
	count   int
}

// families are the minimal sets of consumers, those of one size put together where any choice among their members is one of them. Where one set was found, and not all others
// of its size were tried, others that do as well as its members belong to the family.
func (s *search) families(all []*view.Consumer, order func([]*view.Consumer) []*view.Consumer) []family {
	sets := s.minimal(all, order)
	if len(sets) == 1 && len(sets[0]) > 1 {
		return []family{s.widened(sets[0], order(s.relevant(all)))}
	}
	return families(sets)
}

// widened is the family of a minimal set and of others of which each does in place of its last member.
func (s *search) widened(set, all []*view.Consumer) family {
	return family{widen(s, set, all, s.does), len(set)}
}

// widen are the members of a minimal set and others of which each does in place of its last member. Not all choices among them are tried, of which there may be millions, but as
// many as there are members, each of them in as many as another: where one of these is too few, the set stays alone.
func widen[T comparable](s *search, set, all []T, does func([]T) bool) []T {
	members, last := slices.Clone(set), len(set)-1
	for _, h := range all[:min(len(all), len(set)+s.upTo(maxSingles))] {
		if !slices.Contains(set, h) && does(slices.Concat(set[:last], []T{h})) {
			members = append(members, h)
		}
	}
	round := slices.Concat(members, members)
	for i := range members {
		if len(members) > len(set) && !does(round[i:i+len(set)]) {
			return set
		}
	}
	return members
}

// does reports whether the gang starts once the consumers are gone.
func (s *search) does(set []*view.Consumer) bool { return s.frees(set) && s.enough(set) }

// families puts sets of one size together where any choice among their members is one of them.
func families(sets [][]*view.Consumer) []family {
	bySize := map[int][][]*view.Consumer{}
	var sizes []int
	for _, set := range sets {
		if bySize[len(set)] == nil {
			sizes = append(sizes, len(set))
		}
		bySize[len(set)] = append(bySize[len(set)], set)
	}
	slices.Sort(sizes)
	var all []family
	for _, size := range sizes {
		var union []*view.Consumer
		for _, set := range bySize[size] {
			for _, h := range set {
				if !slices.Contains(union, h) {
					union = append(union, h)
				}
			}
		}
		if n := len(bySize[size]); choices(len(union), size, n) == n {
			all = append(all, family{union, size})
			continue
		}
		for _, set := range bySize[size][:min(maxSets, len(bySize[size]))] {
			all = append(all, family{set, size})
		}
	}
	return all
}

// choices is how many choices of k of n there are; more than most is not counted further.
func choices(n, k, most int) int {
	result := 1
	for i := range min(k, n-k) {
		if result = result * (n - i) / (i + 1); result > most {
			break
		}
	}
	return result
}
