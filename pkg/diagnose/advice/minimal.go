package advice

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/placement"
)

const (
	// maxSet is the size up to which all sets are tried, among at most maxExact consumers; larger ones are found by halving. In
	// a large cluster, where each try costs more, it is maxPair among maxFew.
	maxSet, maxExact = 3, 12
	maxPair, maxFew  = 2, 8
	large            = 200
	// maxSingles is how many consumers are tried alone; in a large cluster it is maxFew.
	maxSingles = 32
	// maxSets is how many sets are offered if they cannot be put into one sentence.
	maxSets = 4
)

// upTo is how many are tried, less in a large cluster, where each try costs more.
func (s *search) upTo(usual int) int {
	if len(s.w.Cluster().Nodes()) > large {
		return maxFew
	}
	return usual
}

// enough reports whether the gang starts once the consumers are gone.
func (s *search) enough(set []*view.Consumer) bool { return s.without(set).starts }

// frees reports whether the consumers leave enough room: true wherever enough is.
func (s *search) frees(set []*view.Consumer) bool {
	if s.spent() {
		return false
	}
	cleared := s.cleared(set)
	frees := s.room(cleared, s.base.Request.Gang)
	if !frees && len(set) > len(s.few.set) {
		s.few = few{slices.Clone(set), cleared}
	}
	return frees
}

// few are the most consumers that were found to be too few, and the cluster without them.
type few struct {
	set     []*view.Consumer
	cluster *placement.Cluster
}

// cleared is the cluster without the consumers. A larger set is tried after one that is too small, of which it begins with.
func (s *search) cleared(set []*view.Consumer) *placement.Cluster {
	cluster, n := s.cluster(), len(s.few.set)
	if n > 0 && n <= len(set) && slices.Equal(s.few.set, set[:n]) {
		cluster, set = s.few.cluster, set[n:]
	}
	var uids []types.UID
	for _, h := range set {
		uids = append(uids, h.UIDs()...)
	}
	return cluster.Without(uids...)
}

// minimal are the sets of which no part would do: all small ones where there are few consumers, else some. They are tried in
// the order that is given.
func (s *search) minimal(all []*view.Consumer, order func([]*view.Consumer) []*view.Consumer) [][]*view.Consumer {
	s.few = few{}
	defer func() { s.few = few{} }() // a cluster is large
	if len(all) == 0 || !s.frees(all) || !s.enough(all) {
		return nil
	}
	some := order(s.relevant(all))
	if len(some) == 0 || len(some) < len(all) && !s.frees(some) {
		return nil
	}
	all = some
	var sets [][]*view.Consumer
	try := func(set []*view.Consumer) {
		covered := slices.ContainsFunc(sets, func(known []*view.Consumer) bool { return within(known, set) })
		if !covered && s.does(set) {
			sets = append(sets, set)
		}
	}
	size, among, singles := maxSet, maxExact, maxSingles
	if len(s.w.Cluster().Nodes()) > large {
		size, among, singles = maxPair, maxFew, maxFew
	}
	for _, h := range all[:min(singles, len(all))] {
		try([]*view.Consumer{h})
	}
	first := all[:min(among, len(all))]
	if len(sets) < len(first) && s.frees(first) {
		for n := 2; n <= min(size, len(first)); n++ {
			for set := range combinations(first, n) {
				if s.spent() {
					return sets
				}
				try(set)
			}
		}
	}
	if len(sets) == 0 {
		if set := s.shrink(all); set != nil {
			sets = append(sets, set)
		}
	}
	return sets
}

// shrink finds one minimal set among many consumers.
func (s *search) shrink(all []*view.Consumer) []*view.Consumer {
	set := all
	if len(all) > maxSingles {
		n, _ := smallest(1, int64(len(all)), func(n int64) bool { return n == int64(len(all)) || s.frees(all[:n]) })
		set = s.narrowed(all[:n])
	}
	set = least(set, s.frees)
	if s.spent() {
		return nil // not known to be minimal
	}
	if s.enough(set) {
		return set
	}
	if !s.rationed() || !s.enough(all) {
		return nil
	}
	if set = least(all, s.enough); s.spent() {
		return nil
	}
	return set
}

// narrowed leaves out consumers that the first placement found does without: of thousands that leaves those of the nodes where
// members would be.
func (s *search) narrowed(set []*view.Consumer) []*view.Consumer {
	used := map[string]bool{}
	if placed := s.placed(s.cleared(set), s.base.Request.Gang); placed != nil {
		for _, a := range placed.Placement {
			used[a.Node] = true
		}
	}
	there := func(p *corev1.Pod) bool { return used[p.Spec.NodeName] }
	narrow := slices.DeleteFunc(slices.Clone(set), func(h *view.Consumer) bool { return !slices.ContainsFunc(h.Pods, there) })
	if len(narrow) > 0 && s.frees(narrow) {
		return narrow
	}
	return set
}

// combinations are all subsets of a size, in order.
func combinations[T any](all []T, size int) func(yield func([]T) bool) {
	return func(yield func([]T) bool) {
		var pick func(from int, chosen []T) bool
		pick = func(from int, chosen []T) bool {
			if len(chosen) == size {
				return yield(slices.Clone(chosen))
			}
			for i := from; i <= len(all)-(size-len(chosen)); i++ {
				if !pick(i+1, append(chosen, all[i])) {
					return false
				}
			}
			return true
		}
		pick(0, nil)
	}
}

func within(part, whole []*view.Consumer) bool {
	return !slices.ContainsFunc(part, func(h *view.Consumer) bool { return !slices.Contains(whole, h) })
}
