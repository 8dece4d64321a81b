package advice

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
)

// evictor searches for what could be evicted.
type evictor struct{ *search }

// evict offers to take room from services, which never end, from jobs that idle for good, and from jobs of lower priority. Never from equals: that is for
// people to decide. Never from what the system itself runs on.
func (s evictor) evict() {
	mine, preempts := s.priority()
	partner := s.base.Primary.Partner
	victims := s.otherConsumers(func(h *view.Consumer) bool {
		if h.Namespace == s.g.Meta.Namespace && slices.ContainsFunc(s.g.Job.Bare, func(p *corev1.Pod) bool { return s.w.Includes(h, p) }) || partner != nil && h.String() == partner.String() {
			return false // the pods of the gang would go with it; and the finding that they wait for each other offers it
		}
		return h.Priority() < criticalPriority && !slices.ContainsFunc(h.Pods, s.w.Stuck) && (!h.Ends || s.base.Stalled(h) || preempts && h.Priority() < mine)
	})
	for i, set := range s.minimal(victims, cheapest) {
		if i == maxSets {
			return
		}
		s.offer(s.eviction(set))
	}
}

// priority is that of the gang, and whether it may preempt.
func (s evictor) priority() (value int32, preempts bool) {
	terms := stage.TermsOf(s.g, s.base.Request)
	return terms.Priority, terms.Policy == ""
}

// lower reads like (priority 5 < 50), with a space before it, for a job or a service that the gang may preempt.
func (s evictor) lower(h *view.Consumer) string {
	mine, preempts := s.priority()
	if !preempts || h.Priority() >= mine {
		return ""
	}
	return fmt.Sprintf(" (priority %d < %d)", h.Priority(), mine)
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
	var names, texts, costs, commands []string
	for _, h := range set {
		names = append(names, s.naming().Name(h))
		texts = append(texts, s.naming().Title(h)+s.lower(h))
		way := s.naming().GiveWay(h)
		cost := fmt.Sprintf("%s %s", s.naming().Name(h), way.Cost)
		if guarded := s.naming().Guarded(h.Pods); guarded != "" {
			cost += fmt.Sprintf("; %s, which the command does not respect", guarded)
		}
		commands, costs = append(commands, way.Command), append(costs, cost)
	}
	return stage.Fix{
		Action: answer.Action{Kind: answer.Evict, By: answer.Admin, Text: "take the room of " + phrase.Names(texts), Cost: phrase.Names(costs),
			Change: map[string]any{"jobs": names}, Command: command.Then(commands...)},
		Apply: func(snap *snapshot.Snapshot) *snapshot.Snapshot { return s.gone(snap, set) },
	}
}
