package advice

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement"
)

// uncordoner searches for nodes that could take pods again.
type uncordoner struct{ *search }

// uncordon offers the smallest set of cordoned nodes that has to be opened.
func (s uncordoner) uncordon() {
	s.fewest(func(n *corev1.Node) bool { return placement.Uncordoned(n) != n && !stage.Upgraded(n) }, stage.Opened, stage.Uncordon)
}

// downFor is for how long a node takes no pods until its repair is offered: most come back by themselves.
const downFor = 5 * time.Minute

// repair offers the smallest set of nodes that take no pods and have to be well.
func (s uncordoner) repair() {
	down := stage.WellAgain(s.w)
	well := func(names []string) func(*corev1.Node) *corev1.Node { return stage.Well(s.w, names) }
	s.fewest(func(n *corev1.Node) bool { return down[n] != nil && s.w.Age(placement.ReadyChangedAt(n)) > downFor }, well, stage.Repair)
}

// fewest offers the smallest set of some nodes that has to change. Those that leave are none of them.
func (s uncordoner) fewest(some func(*corev1.Node) bool, change func([]string) func(*corev1.Node) *corev1.Node, fix func(*view.View, []string) stage.Fix) {
	var names []string
	for _, n := range s.w.Cluster().Nodes() {
		if some(n) && !stage.Leaves(n) {
			names = append(names, n.Name)
		}
	}
	enough := func(names []string) bool {
		return s.room(s.cluster().MapNodes(change(names)), s.base.Request.Gang)
	}
	if len(names) == 0 || !enough(names) {
		return
	}
	names = least(names, enough)
	if s.spent() {
		return
	}
	s.offer(fix(s.w, names))
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
