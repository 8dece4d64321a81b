package stages

import (
	"fmt"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// deadlocked looks for gangs that hold a part each and wait for each other's: this one would be complete without the other,
// and the other without this one.
func (c *climb) deadlocked() bool {
	for _, h := range c.others() {
		if h.Job == nil {
			continue
		}
		g := c.w.Gang(h.Job)
		if g.Count(gang.Starting, gang.Running, gang.Succeeded) >= g.Min || g.Count(gang.Pending) == 0 {
			continue
		}
		if !c.search(c.w.Cluster().Without(h.UIDs()...), c.Party.Gang, nil).Fits() {
			continue
		}
		theirs := c.w.Party(g)
		if !c.search(c.w.Cluster().Without(c.Party.Bound...), theirs.Gang, nil).Fits() {
			continue
		}
		c.add(*c.deadlock(h, g))
		return true
	}
	return false
}

func (c *climb) deadlock(h *view.Holder, g *gang.Gang) *Finding {
	mine, since := c.idle()
	theirs, _ := Held(g)
	f := found(answer.StageLife, answer.MutualDeadlock, answer.Degraded, answer.User, "%s and %s wait for each other: they hold %s and %s members, and neither can finish",
		c.g.Meta.Name, h, fraction(c.g.Count(gang.Starting, gang.Running), c.g.Total()), fraction(g.Count(gang.Starting, gang.Running), g.Total())).
		fact("with", h.String()).fact("idleGPUs", mine).since(since).
		detail("%s idle in %s, %s in %s: one of them has to give way", phrase.Count(mine, "GPU"), c.g.Meta.Name, phrase.Count(theirs, "GPU"), h)
	uid := h.Job.Meta.UID
	return f.fix(Fix{
		Action: answer.Action{Kind: answer.Evict, By: answer.Admin, Text: fmt.Sprintf("suspend or delete %s", h), Cost: h.String() + " starts over", Change: map[string]any{"jobs": []string{h.String()}},
			Command: command.Kubectl(h.Namespace, "delete", h.Job.Reader.Words[0], h.Name)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Gone(s, h.Pods, uid) },
	})
}
