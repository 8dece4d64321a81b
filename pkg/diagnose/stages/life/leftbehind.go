package life

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// stuckMembers are the members whose pods should have gone long ago. Those that are leaving in time do not count.
func stuckMembers(c *stage.Context) (all []lostMember) {
	for _, m := range c.Gang.Members {
		if m.State == gang.Terminating && c.View.Stuck(m.Pod) {
			all = append(all, lostMember{Member: m})
		}
	}
	return all
}

// Behind finds the pods that should have gone and have not of a gang that runs without their successors.
func Behind(c *stage.Context, out *stage.Result) (s stage.State) {
	if left := stuckMembers(c); len(left) > 0 {
		out.Add(stuckBehind(c, left))
	}
	return s
}

// stuckBehind finds that pods of a suspended job should have gone and have not.
func stuckBehind(c *stage.Context, left []lostMember) *stage.Finding {
	names := make([]string, 0, len(left))
	for _, l := range left {
		names = append(names, l.Pod.Name)
	}
	f := stage.Found(answer.StuckTerminating, "%s stuck in Terminating, and %s no successor before %s gone", phrase.AreNames(names), phrase.Verb(len(names), "has", "have"), phrase.Verb(len(names), "it is", "they are")).
		At(answer.StageLife).Fact("pods", names)
	leftBehind(c, f, left)
	return f
}

// leftBehind adds to a loss the members whose pods should have gone and have not: as long as a pod is there, no successor of its name
// is made.
func leftBehind(c *stage.Context, f *stage.Finding, lost []lostMember) {
	stuck := slices.DeleteFunc(slices.Clone(lost), func(l lostMember) bool { return l.Pod == nil || !c.View.Stuck(l.Pod) })
	if len(stuck) == 0 {
		return
	}
	stage.DetailEach(f, stuck, func(l lostMember) string {
		return fmt.Sprintf("%s %s: %s; its successor is made after that", l.Name(), c.Overdue(l.Pod), c.HeldBy(l.Pod))
	})
	var pods []*corev1.Pod
	for _, l := range stuck {
		pods = append(pods, l.Pod)
	}
	names, action := c.PodNames(pods), c.Clear(pods)
	action.Text += ", so that the " + phrase.Verb(len(names), "successor", "successors") + " of " + phrase.Names(names) + phrase.Verb(len(names), " is", " are") + " made"
	c.BringBackNodes(f.Fact("terminating", names), pods).Fix(stage.Fix{
		Action: action,
		Apply:  func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Replaced(s, pods) },
	})
}
