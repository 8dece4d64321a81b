package advice

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement"
)

// evictor searches for what could be evicted.
type evictor struct{ *search }

// evict offers to take room from services, which never end, from jobs that idle for good, and from jobs of lower priority. Never from equals: that is for
// people to decide. Never from what the system itself runs on.
func (s evictor) evict() {
	mine := stage.TermsOf(s.g, s.base.Request)
	partner := s.base.Primary.Partner
	victims := s.otherConsumers(func(h *view.Consumer) bool {
		if h.Namespace == s.g.Meta.Namespace && slices.ContainsFunc(s.g.Job.Bare, func(p *corev1.Pod) bool { return s.w.Includes(h, p) }) || partner != nil && h.Is(partner) {
			return false // the pods of the gang would go with it; and the finding that they wait for each other offers it
		}
		return s.naming().Evictable(h) && (!h.Ends || s.base.Stalled(h) || stage.Lower(h, mine) != "")
	})
	for i, set := range s.minimal(victims, cheapest) {
		if i == maxSets {
			return
		}
		if set, after := s.sparing(set); after.starts {
			s.add(s.eviction(set), after.placed)
		}
	}
}

// preempted searches in the cluster without what the gang's scheduler preempts as soon as that makes room for all, if other jobs have to end before. It reports whether
// something was found.
func (s evictor) preempted(search func()) bool {
	mine := stage.TermsOf(s.g, s.base.Request)
	if s.rationed() || component.PreemptsBy(s.w, s.g.Scheduler) != "" {
		return false
	}
	victims := s.relevant(s.otherConsumers(func(h *view.Consumer) bool {
		return stage.Lower(h, mine) != "" && !slices.ContainsFunc(h.Pods, s.w.Stuck)
	}))
	if len(victims) == 0 {
		return false
	}
	if pods, _ := stage.PodsAndOwners(victims); s.room(s.cluster().Without(placement.PodIDs(pods)...), s.base.Request.Gang) {
		return false // no job has to end for that
	}
	whom := phrase.NamesOf(victims, func(h *view.Consumer) string { return s.naming().Title(h) + stage.Lower(h, mine) })
	if len(victims) > 1 {
		whom = "as many as it needs of " + whom
	}
	return s.in(s.w.Assume(s.gone(s.w.Snap, victims)), search, ", and its scheduler preempts "+whom+" then")
}

// cheapest puts first what is left over or matters least, and of equals what has fewer pods.
func cheapest(all []*view.Consumer) []*view.Consumer {
	slices.SortStableFunc(all, func(a, b *view.Consumer) int {
		if a.Leftover() != b.Leftover() {
			if a.Leftover() {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Priority(), b.Priority()), len(a.Pods)-len(b.Pods))
	})
	return all
}

func (s evictor) eviction(set []*view.Consumer) stage.Fix {
	fix := s.naming().Evict(set, stage.TermsOf(s.g, s.base.Request))
	fix.Apply = func(snap *snapshot.Snapshot) *snapshot.Snapshot { return s.gone(snap, set) }
	return fix
}
