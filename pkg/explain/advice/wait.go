package advice

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/ladder"
	"github.com/gangctl/gangctl/pkg/explain/phrase"
	"github.com/gangctl/gangctl/pkg/explain/whatif"
	"github.com/gangctl/gangctl/pkg/explain/world"
	"github.com/gangctl/gangctl/pkg/fit"
	"github.com/gangctl/gangctl/pkg/snapshot"
)

const (
	// maxSet is the size up to which all sets are tried, among at most maxExact holders; larger ones are found by halving.
	maxSet, maxExact = 3, 12
	// maxSingles is how many holders are tried alone.
	maxSingles = 64
	// maxSets is how many sets are offered if they cannot be put into one sentence.
	maxSets = 4
)

// others are the holders that are not this gang.
func (s *search) others(match func(*world.Holder) bool) []*world.Holder {
	var all []*world.Holder
	for _, h := range s.w.Holders() {
		if !h.DaemonSet && (h.Job == nil || h.Job.Meta.UID != s.g.Meta.UID) && match(h) {
			all = append(all, h)
		}
	}
	return all
}

// gone is the cluster after holders are gone as a whole.
func gone(snap *snapshot.Snapshot, set []*world.Holder) *snapshot.Snapshot {
	var pods []*corev1.Pod
	var uids []types.UID
	for _, h := range set {
		pods = append(pods, h.Pods...)
		if h.Job != nil {
			uids = append(uids, h.Job.Meta.UID)
		}
	}
	return whatif.Gone(snap, pods, uids...)
}

// wait offers the minimal sets of jobs whose end lets the gang start. It may use half of the time that is left.
func (s *search) wait() {
	whole := s.ctx
	if deadline, ok := whole.Deadline(); ok {
		within, cancel := context.WithTimeout(whole, time.Until(deadline)/2)
		defer func() { cancel(); s.ctx = whole }()
		s.ctx = within
	}
	jobs := s.others(func(h *world.Holder) bool { return h.Ends && len(h.Stuck(s.w.Now)) == 0 })
	for _, family := range families(s.minimal(jobs)) {
		s.offerWait(family)
	}
}

// enough reports whether the gang starts once the holders are gone.
func (s *search) enough(set []*world.Holder) bool {
	_, starts := s.try(func(snap *snapshot.Snapshot) *snapshot.Snapshot { return gone(snap, set) })
	return starts
}

// room is the same by placement alone, which is quick, and true wherever enough is.
func (s *search) room(set []*world.Holder) bool {
	var uids []types.UID
	for _, h := range set {
		uids = append(uids, h.UIDs()...)
	}
	r := fit.Place(s.ctx, s.w.Cluster().Without(uids...), s.base.Party.Gang, fit.Options{Budget: s.opts.Budget})
	return !r.Impossible()
}

// minimal are the sets of which no part would do: all small ones where there are few holders, else some.
func (s *search) minimal(all []*world.Holder) [][]*world.Holder {
	if len(all) == 0 || !s.room(all) || !s.enough(all) {
		return nil
	}
	relevant := s.sorted(s.relevant(all))
	if len(relevant) == 0 {
		return nil
	}
	var sets [][]*world.Holder
	try := func(set []*world.Holder) {
		covered := slices.ContainsFunc(sets, func(known []*world.Holder) bool { return within(known, set) })
		if !covered && s.ctx.Err() == nil && s.room(set) && s.enough(set) {
			sets = append(sets, set)
		}
	}
	for _, h := range relevant[:min(maxSingles, len(relevant))] {
		try([]*world.Holder{h})
	}
	for size := 2; size <= min(maxSet, len(relevant)); size++ {
		for set := range combinations(relevant[:min(maxExact, len(relevant))], size) {
			try(set)
		}
	}
	if len(sets) == 0 {
		if set := s.shrink(relevant); set != nil {
			sets = append(sets, set)
		}
	}
	return sets
}

// relevant leaves out holders whose end frees nothing that the gang could use: they hold nothing of what is short on nodes
// that it may use, and no queue or quota is among the reasons.
func (s *search) relevant(all []*world.Holder) []*world.Holder {
	if s.queued() || len(s.base.Matrices) == 0 {
		return all
	}
	usable := map[string]bool{}
	short := map[corev1.ResourceName]bool{}
	other := false
	for _, m := range s.base.Matrices {
		for _, row := range m.Rows {
			usable[row.Node] = usable[row.Node] || !slices.ContainsFunc(row.Violations, func(v fit.Violation) bool { return fixed(v.Constraint) })
			for _, v := range row.Violations {
				if v.Resource != "" {
					short[v.Resource] = true
				} else if !fixed(v.Constraint) {
					other = true // a rule about other pods: any of them may matter
				}
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(h *world.Holder) bool {
		return !slices.ContainsFunc(h.Pods, func(p *corev1.Pod) bool {
			if !usable[p.Spec.NodeName] {
				return false
			}
			if other || short[corev1.ResourcePods] {
				return true
			}
			request := fit.Request(p)
			for name := range short {
				if q := request[name]; !q.IsZero() {
					return true
				}
			}
			return false
		})
	})
}

// fixed reports whether a constraint stands whatever runs on the node.
func fixed(c fit.Constraint) bool {
	if _, amount := c.ResourceName(); amount {
		return false
	}
	switch c {
	case fit.PodAffinity, fit.PodAntiAffinity, fit.TopologySpread, fit.HostPort, fit.DRADevices, fit.VolumeLimits, fit.VolumeClaim:
		return false
	}
	return true
}

// queued reports whether a queue or a quota is among the reasons.
func (s *search) queued() bool {
	return slices.ContainsFunc(s.base.Findings(), func(f ladder.Finding) bool {
		return f.Stage == answer.StageQueue || f.Stage == answer.StagePods || f.Code == answer.QueueOrder
	})
}

// sorted puts first what has a declared end, the earliest first; and then what shares its node with the fewest others, so
// that a few ends empty whole nodes.
func (s *search) sorted(all []*world.Holder) []*world.Holder {
	onNode := map[string]int{}
	for _, h := range all {
		for node := range nodesOf(h) {
			onNode[node]++
		}
	}
	best := map[*world.Holder]string{}
	for _, h := range all {
		for node := range nodesOf(h) {
			if b := best[h]; b == "" || onNode[node] < onNode[b] || onNode[node] == onNode[b] && node < b {
				best[h] = node
			}
		}
	}
	slices.SortFunc(all, func(a, b *world.Holder) int {
		return cmp.Or(compareEnd(a, b), cmp.Compare(onNode[best[a]], onNode[best[b]]), cmp.Compare(best[a], best[b]), strings.Compare(a.String(), b.String()))
	})
	return all
}

func nodesOf(h *world.Holder) map[string]bool {
	nodes := map[string]bool{}
	for _, p := range h.Pods {
		nodes[p.Spec.NodeName] = true
	}
	return nodes
}

// shrink finds by halving how many of the holders, in order, have to end, and then drops what is not needed.
func (s *search) shrink(all []*world.Holder) []*world.Holder {
	n, ok := smallest(1, int64(len(all)), func(n int64) bool { return s.ctx.Err() == nil && s.room(all[:n]) })
	if !ok || !s.enough(all[:n]) {
		return nil
	}
	set := slices.Clone(all[:n])
	for i := len(set) - 1; i >= 0; i-- {
		rest := slices.Delete(slices.Clone(set), i, i+1)
		if s.room(rest) && s.enough(rest) {
			set = rest
		}
	}
	if s.ctx.Err() != nil {
		return nil // not known to be minimal
	}
	return set
}

// compareEnd puts declared ends first, the earliest before all.
func compareEnd(a, b *world.Holder) int {
	if a.Deadline.IsZero() != b.Deadline.IsZero() {
		if a.Deadline.IsZero() {
			return 1
		}
		return -1
	}
	return a.Deadline.Compare(b.Deadline)
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

func within(part, whole []*world.Holder) bool {
	return !slices.ContainsFunc(part, func(h *world.Holder) bool { return !slices.Contains(whole, h) })
}

// family is any count of members.
type family struct {
	members []*world.Holder
	count   int
}

// families puts sets of one size together where any choice among their members is one of them.
func families(sets [][]*world.Holder) []family {
	bySize := map[int][][]*world.Holder{}
	for _, set := range sets {
		bySize[len(set)] = append(bySize[len(set)], set)
	}
	var all []family
	sizes := make([]int, 0, len(bySize))
	for size := range bySize {
		sizes = append(sizes, size)
	}
	slices.Sort(sizes)
	for _, size := range sizes {
		var union []*world.Holder
		for _, set := range bySize[size] {
			for _, h := range set {
				if !slices.Contains(union, h) {
					union = append(union, h)
				}
			}
		}
		if choose(len(union), size) == len(bySize[size]) {
			all = append(all, family{union, size})
			continue
		}
		for i, set := range bySize[size] {
			if i == maxSets {
				break
			}
			all = append(all, family{set, size})
		}
	}
	return all
}

func choose(n, k int) int {
	result := 1
	for i := range k {
		result = result * (n - i) / (i + 1)
	}
	return result
}

func (s *search) offerWait(f family) {
	slices.SortStableFunc(f.members, compareEnd)
	var names []string
	for _, h := range f.members {
		names = append(names, h.String())
	}
	a := answer.Action{Kind: answer.Wait, By: answer.Nobody, Change: map[string]any{"jobs": names, "count": f.count}, Text: waitText(names, f.count)}
	// It starts when the COUNTth of them ends: known if so many have a declared end.
	if last := f.members[f.count-1]; !last.Deadline.IsZero() {
		eta := last.Deadline
		a.ETA, a.ETASource = &eta, last.Source
	}
	r, ok := s.try(func(snap *snapshot.Snapshot) *snapshot.Snapshot { return gone(snap, f.members[:f.count]) })
	if !ok {
		return
	}
	a.Verified, a.Placement = true, Placement(r)
	s.actions = append(s.actions, a)
}

func waitText(names []string, count int) string {
	switch {
	case len(names) == 1:
		return names[0] + " ends"
	case count == len(names):
		return "all of " + phrase.Names(names) + " end"
	case count == 1:
		return phrase.Or(names) + " ends"
	}
	return fmt.Sprintf("any %d of %s end", count, phrase.Names(names))
}
