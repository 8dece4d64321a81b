package advice

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement"
)

// nodeRepairer searches for nodes that could take pods again.
type nodeRepairer struct{ *search }

// uncordon offers the fewest cordoned nodes that have to be opened.
func (s nodeRepairer) uncordon() { s.fewest(s.closed()) }

// closed is that all cordoned nodes are opened.
func (s nodeRepairer) closed() *stage.NodeRepair {
	return stage.Uncordon(s.w, s.those(func(n *corev1.Node) bool { return placement.Uncordoned(n) != n && !stage.Upgraded(n) }))
}

// downFor is for how long a node takes no pods until its repair is offered: most come back by themselves.
const downFor = 5 * time.Minute

// repair offers the fewest nodes that take no pods and have to be well. Those that a finding is about have been tried.
func (s nodeRepairer) repair() {
	for _, f := range s.base.Findings() {
		if slices.ContainsFunc(f.Fixes, func(fix stage.Fix) bool {
			return fix.Repair != nil && fix.Kind == answer.Fix && f.Code == answer.NodeNotReady
		}) {
			return
		}
	}
	down := stage.WellAgain(s.w)
	s.fewest(stage.Repair(s.w, s.those(func(n *corev1.Node) bool { return down[n] != nil && s.w.Age(placement.ReadyChangedAt(n)) > downFor })))
}

// those are the names of some nodes, less those that leave.
func (s nodeRepairer) those(some func(*corev1.Node) bool) (names []string) {
	for _, n := range s.w.Cluster().Nodes() {
		if some(n) && !stage.Leaves(n) {
			names = append(names, n.Name)
		}
	}
	return names
}

// fewest offers a repair of no more nodes than is enough.
func (s nodeRepairer) fewest(repair *stage.NodeRepair) {
	if len(repair.Names) == 0 {
		return
	}
	if fix, ok := s.enough(repair); ok {
		s.offer(fix)
	}
}

// offerLeast offers a fix; one that repairs nodes with no more of them than is enough, if that starts the gang, too.
func (s nodeRepairer) offerLeast(fix stage.Fix) bool {
	if fix.Repair != nil && len(fix.Repair.Names) > 1 {
		if some, ok := s.enough(fix.Repair); ok && s.offer(some) {
			return true
		}
	}
	return s.offer(fix)
}

// enough is a repair of no more nodes than is enough for that the gang has room, with those that do as well; ok is false where all together are too few. After a step it is
// not looked for others: that is one of several changes then.
func (s nodeRepairer) enough(repair *stage.NodeRepair) (fix stage.Fix, ok bool) {
	does := func(names []string) bool {
		return s.room(s.cluster().MapNodes(stage.Only(names, repair.Of)), s.base.Request.Gang)
	}
	if !does(repair.Names) {
		return fix, false
	}
	before := s.budget
	defer func() { s.budget = before }()
	s.end = s.share(2).end // the rest is for what comes of the repair
	names := least(repair.Names, func(names []string) bool { return !s.spent() && does(names) })
	among := names
	if s.upon == nil && !s.spent() {
		if wider := widen(s.search, names, repair.Names, does); !s.spent() {
			among = wider
		}
	}
	return repair.Some(names, among), true
}

// least leaves out of a set that is enough what is not needed: first all that stands behind the shortest beginning that is
// enough, then one after the other.
func least[T any](set []T, enough func([]T) bool) []T {
	n, ok := smallest(1, int64(len(set)), func(n int64) bool { return n == int64(len(set)) || enough(set[:n]) })
	if !ok {
		return set
	}
	set = slices.Clone(set[:n])
	for i := len(set) - 1; i >= 0 && len(set) > 1; i-- {
		if rest := slices.Delete(slices.Clone(set), i, i+1); enough(rest) {
			set = rest
		}
	}
	return set
}

// smallest is the smallest value for which a monotone test is true.
func smallest(lo, hi int64, test func(int64) bool) (int64, bool) {
	if lo > hi || !test(hi) {
		return 0, false
	}
	for lo < hi {
		mid := lo + (hi-lo)/2
		if test(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo, true
}
