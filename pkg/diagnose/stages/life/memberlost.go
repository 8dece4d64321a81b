package life

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// memberLost finds that members that ran are gone, and the gang cannot run without them.
func memberLost(c *stage.Context, lost []lostMember) *stage.Finding {
	var names []string
	for _, x := range lost {
		names = append(names, x.Name())
	}
	idle, _ := stage.IdleDevices(c.Gang)
	idling := ""
	if idle > 0 {
		idling = fmt.Sprintf("; %s idle", phrase.Count(idle, "GPU"))
	}
	thieves := thieves(c, lost)
	code, tail := answer.MemberLost, ", and there is no room for "+phrase.Verb(len(names), "it", "them")
	switch {
	case len(thieves) > 0:
		code, tail = answer.SlotStolen, ", and "+c.Name(thieves[0])+" took the room"
	case refused(c) && !slices.ContainsFunc(lost, func(l lostMember) bool { return l.Pod != nil }):
		tail = ", and no pod that replaces " + phrase.Verb(len(names), "it", "them") + " is accepted"
	case c.Placement == nil:
		tail = ""
	case c.Placement.Fits() && slices.ContainsFunc(c.Findings, func(f stage.Finding) bool { return f.Stage == answer.StageQueue }):
		tail = ", and nodes have room again, but its queue has not"
	case c.Placement.Fits() && !slices.ContainsFunc(lost, lostMember.seen):
		tail = ", and there is room"
	case c.Placement.Fits():
		tail = ", and there is room again"
	}
	f := stage.Found(code, "%s%s: %s%s%s", up(c.Gang), least(c.Gang), losses(c, lost), tail, idling).
		Fact("lost", names).Fact("idleGPUs", idle).SinceTime(firstLoss(lost))
	for i, x := range lost {
		if x.how != "" {
			f.Detail("%s: %s", x.Name(), x.how)
		}
		outgrew(c, f, x)
		if next := untilBack(c, x); next != "" && i < stage.MaxLines {
			if f.Detail("%s", next); len(f.Commands) == 0 {
				f.Run(command.Kubectl("", "describe", "node", x.Pod.Spec.NodeName))
			}
		}
	}
	leftBehind(c, f, lost)
	for _, h := range thieves {
		for _, p := range h.Pods {
			if p.Status.StartTime != nil {
				f.Detail("%s took %s %s ago", c.Name(h), p.Spec.NodeName, phrase.Age(c.View.Age(p.Status.StartTime.Time)))
			}
		}
	}
	return f
}

// up reads like: 3/4 run; or 2/4 run and 1 is done.
func up(g *gang.Gang) string {
	text, done := phrase.Fraction(g.Count(gang.Running), g.Total())+" run", g.Count(gang.Succeeded)
	if done > 0 {
		text += fmt.Sprintf(" and %d %s done", done, phrase.Verb(int(done), "is", "are"))
	}
	return text
}

// losses reads like: worker-2 was lost on n3 16m ago, worker-3 on n4 10m ago, and worker-4 has no pod. Those of one time are named together, and those of which nothing shows that they
// were there.
func losses(c *stage.Context, lost []lostMember) string {
	type loss struct {
		when         string
		names, nodes []string
	}
	var all []*loss
	var unseen []string
	for _, l := range lost {
		if !l.seen() {
			unseen = append(unseen, l.Name())
			continue
		}
		when := ""
		if !l.since.IsZero() {
			when = fmt.Sprintf(" %s ago", phrase.Age(c.View.Age(l.since)))
		}
		i := slices.IndexFunc(all, func(x *loss) bool { return x.when == when })
		if i < 0 {
			i, all = len(all), append(all, &loss{when: when})
		}
		all[i].names = append(all[i].names, l.Name())
		if l.node != "" && !slices.Contains(all[i].nodes, l.node) {
			all[i].nodes = append(all[i].nodes, l.node)
		}
	}
	var texts []string
	for i, x := range all {
		text := phrase.Names(x.names)
		if i == 0 {
			text += phrase.Verb(len(x.names), " was", " were") + " lost"
		}
		if len(x.nodes) > 0 {
			text += " on " + phrase.Names(x.nodes)
		}
		texts = append(texts, text+x.when)
	}
	text := strings.Join(texts, ", ")
	if len(unseen) == 0 {
		return text
	}
	if text != "" {
		text += ", and "
	}
	return text + phrase.Names(unseen) + phrase.Verb(len(unseen), " has no pod", " have no pod")
}

// firstLoss is when the first of the losses was whose time is known; zero if none is.
func firstLoss(lost []lostMember) (first time.Time) {
	for _, l := range lost {
		if first.IsZero() || !l.since.IsZero() && l.since.Before(first) {
			first = l.since
		}
	}
	return first
}

// maxThieves is how many consumers are looked at each by itself: tenants decide how many come.
const maxThieves = 12

// thieves are the consumers that came, after the loss of a member, onto nodes that it may use, if without them there would be room for more members than there is. Those
// without which it would be all the same are left out.
func thieves(c *stage.Context, lost []lostMember) []*view.Consumer {
	if c.Placement == nil || c.Placement.Fits() {
		return nil
	}
	short, roles := c.Lacking().Resource, simulated(c)
	first := map[string]time.Time{} // by role: who came after a later loss came after this one, too
	for _, l := range lost {
		role, ok := roles[l.Name()]
		if at, known := first[role]; ok && !l.since.IsZero() && c.Matrices[role].Rows != nil && (!known || l.since.Before(at)) {
			first[role] = l.since
		}
	}
	came := map[*corev1.Pod]bool{}
	for role, since := range first {
		nodes := sets.New(c.Matrices[role].Usable()...)
		for _, h := range c.Others() {
			for _, p := range h.Pods {
				if p.Status.StartTime != nil && p.Status.StartTime.After(since) && nodes.Has(p.Spec.NodeName) && request.OfResource(p, short) > 0 {
					came[p] = true
				}
			}
		}
	}
	if len(came) == 0 {
		return nil
	}
	room := func(without func(*view.Consumer) bool) int32 {
		return c.Placed(c.Fit(c.Without(func(h *view.Consumer, p *corev1.Pod) bool { return came[p] && without(h) }), nil))
	}
	those := slices.DeleteFunc(slices.Clone(c.Others()), func(h *view.Consumer) bool {
		return !slices.ContainsFunc(h.Pods, func(p *corev1.Pod) bool { return came[p] })
	})
	most := room(func(*view.Consumer) bool { return true })
	if most <= c.Placed(*c.Placement) {
		return nil
	}
	if len(those) > maxThieves {
		return those
	}
	return placement.Needed(those, func(some []*view.Consumer) bool {
		return len(some) > 0 && room(func(h *view.Consumer) bool { return slices.Contains(some, h) }) >= most
	})
}

// simulated are the roles that stand in the simulation for the members that are to be placed, by the member's name.
func simulated(c *stage.Context) map[string]string {
	roles := map[string]string{}
	for _, r := range c.Request.Roles {
		for _, m := range c.Request.Members[r.Name] {
			roles[m.Name()] = r.Name
		}
	}
	return roles
}
