package podgroup

import (
	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// podGroups is the resource of Koordinator's PodGroups.
const podGroups = "podgroups.scheduling.sigs.k8s.io"

// alongside finds that a gang with which this one is placed at once does not exist, or that fewer of its pods do than it needs: the scheduler tries none of them before. Once they
// have been placed together each is placed by itself.
func alongside(c *stage.Context, out *stage.Result) {
	g := c.Gang
	if !component.Alongside(c.View, g) || othersFind(c) || out.Has(answer.BelowQuorum, answer.MinMemberTooHigh) {
		return
	}
	for i, p := range c.View.Alongside(g.Decl) {
		key, title := g.Decl.Alongside[i], phrase.Shorten(p.Name, maxName)
		if key.Namespace != g.Meta.Namespace {
			title = phrase.Shorten(key.Namespace, maxName) + "/" + title
		}
		if !c.Reader.Sees(key.Namespace) || out.DeniedAny(c, key.Namespace, "pods", podGroups) {
			out.Unmodelled = append(out.Unmodelled, "whether gang "+title+", which is placed together with this one, has its pods")
			continue
		}
		if ended := len(c.View.GroupPods(gang.Declaration{Key: key})) - len(p.Pods); p.Min > 0 && (p.Complete() || ended > 0) {
			continue
		}
		late := c.View.Age(lastCreated(c)) > stage.CreationGrace
		if p.Min == 0 {
			f := stage.Found(answer.BelowQuorum, "it is placed together with gang %s, which does not exist: none of them is tried before", title).
				Detail("neither a PodGroup nor a pod declares it; gangs that are placed together are in annotation gang.scheduling.koordinator.sh/groups").Fact("gang", title)
			if late {
				f.As(answer.Blocked, answer.User)
			}
			out.Add(f.Run(command.Kubectl(key.Namespace, "get", podGroups)))
			return
		}
		f := stage.Found(answer.BelowQuorum, "it is placed together with gang %s, which needs %s, and %d %s: none of them is tried before", title, phrase.Count(p.Min, "pod"), p.Queued, phrase.Verb(int(p.Queued), "exists", "exist")).
			Fact("gang", title).Fact("exist", p.Queued).Fact("needed", p.Min)
		switch job := jobOf(c, key); {
		case job != nil:
			f.Run(shell.Join("gangctl", "-n", key.Namespace, "why-pending", job.Reader.Argument(job.Meta.Name)))
		case late:
			f.As(answer.Blocked, answer.User).Message += "; no job makes them"
		}
		out.Add(f.Run(command.Kubectl(key.Namespace, "get", "pods,"+podGroups)))
		return
	}
}

// jobOf is the job of a gang that is declared; nil if there is none.
func jobOf(c *stage.Context, key gang.Key) *gang.Job {
	if d := c.View.Group(key); d != nil {
		return c.View.JobOfGroup(*d)
	}
	return c.View.JobOfGroup(gang.Declaration{Key: key})
}
