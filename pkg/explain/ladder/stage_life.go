package ladder

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/phrase"
	"github.com/gangctl/gangctl/pkg/explain/world"
	"github.com/gangctl/gangctl/pkg/fit"
	"github.com/gangctl/gangctl/pkg/gang"
)

// life looks at a gang of which some members hold nodes while others cannot: what was lost, who took it, and what idles.
func (c *climb) life() state {
	g := c.g
	holding := g.Count(world.Placed, world.Up, world.Lost, world.Leaving)
	if holding == 0 || g.Count(world.Placed, world.Up, world.Succeeded) >= g.Min || c.has(answer.Fits) || g.End != nil {
		return skipped
	}
	if c.startsBadly() {
		return okf("see start")
	}
	switch lost := c.lostMembers(); {
	case c.bypassed():
		c.add(*c.gangBypassed())
	case len(lost) == 0 && c.deadlocked():
	case len(lost) == 0:
		c.add(*c.incomplete())
	default:
		c.add(*c.lost(lost))
	}
	return ok
}

// startsBadly reports whether a placed member has a trouble that somebody has to remove.
func (c *climb) startsBadly() bool {
	return slices.ContainsFunc(c.findings, func(f Finding) bool { return f.Stage == answer.StageStart && f.Verdict == answer.Blocked })
}

// idle is what the placed members hold meanwhile, and since when.
func (c *climb) idle() (int64, time.Time) { return Held(c.g) }

// Held is how many devices the placed members of a gang hold, and since when the last of them is up.
func Held(g *world.Gang) (int64, time.Time) {
	var n int64
	var since time.Time
	for _, m := range g.Members {
		if m.State != world.Placed && m.State != world.Up {
			continue
		}
		request := fit.Request(m.Pod)
		device := phrase.Device(request)
		n += fit.Amount(device, request[device])
		if m.Pod.Status.StartTime != nil {
			since = latest(since, m.Pod.Status.StartTime.Time)
		}
	}
	return n, since
}

func (c *climb) holdingLine() string {
	n, _ := c.idle()
	return fmt.Sprintf("%s of %d members have a node and hold %s for nothing", fmt.Sprint(c.g.Count(world.Placed, world.Up)), c.g.Total(), phrase.Count(n, "GPU"))
}

// lostMember is a member that was there once.
type lostMember struct {
	world.Member
	// node is where it was, if that can be told; since when it is gone.
	node  string
	since time.Time
	how   string
}

// lostMembers are those without a node that had one, as their siblings have: they were made, or lost their node, after the
// others had started.
func (c *climb) lostMembers() []lostMember {
	var started time.Time
	for _, m := range c.g.Members {
		if m.State == world.Up && m.Pod.Status.StartTime != nil {
			started = latest(started, m.Pod.Status.StartTime.Time)
		}
	}
	var all []lostMember
	for _, m := range c.g.Members {
		l := lostMember{Member: m}
		switch {
		case m.State == world.Lost:
			l.node, l.how = m.Pod.Spec.NodeName, "its node is not ready"
		case m.State == world.Leaving:
			l.node, l.since, l.how = m.Pod.Spec.NodeName, deletedAt(m.Pod), "it is being deleted"
			for _, cond := range m.Pod.Status.Conditions {
				if cond.Type == corev1.DisruptionTarget && cond.Status == corev1.ConditionTrue {
					l.how = strings.TrimSpace(cond.Reason + " " + cond.Message)
				}
			}
		case m.State == world.Broken:
			l.node, l.how = m.Pod.Spec.NodeName, strings.ToLower(m.Pod.Status.Reason+" "+m.Pod.Status.Message)
		case m.Pod != nil && !started.IsZero() && m.Pod.CreationTimestamp.After(started.Add(creating)):
			l.since = m.Pod.CreationTimestamp.Time
		case m.Pod == nil && !started.IsZero():
			l.how = "no pod replaces it"
		default:
			continue
		}
		c.whereWas(&l)
		all = append(all, l)
	}
	return all
}

// deletedAt is when somebody asked for the deletion of a pod: its timestamp is when the grace period ends.
func deletedAt(p *corev1.Pod) time.Time {
	at := p.DeletionTimestamp.Time
	if p.DeletionGracePeriodSeconds != nil {
		at = at.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
	}
	return at
}

// whereWas guesses the node of a member that was replaced: one that went away while the gang ran and where no sibling is.
func (c *climb) whereWas(l *lostMember) {
	taken := map[string]bool{}
	for _, m := range c.g.Members {
		if m.Bound() && m.Index != l.Index {
			taken[m.Pod.Spec.NodeName] = true
		}
	}
	for _, n := range c.w.Cluster().Nodes() {
		if l.node != "" && n.Name != l.node || l.node == "" && (world.NodeReady(n) || taken[n.Name]) {
			continue
		}
		for _, cond := range n.Status.Conditions {
			if cond.Type == corev1.NodeReady && cond.Status != corev1.ConditionTrue {
				l.node, l.since = n.Name, cond.LastTransitionTime.Time
				l.how = fmt.Sprintf("node %s is not ready", n.Name)
			}
		}
		return
	}
}

// lost: members that ran are gone, and the gang cannot run without them.
func (c *climb) lost(lost []lostMember) *Finding {
	l := lost[0]
	var names []string
	for _, x := range lost {
		names = append(names, x.Name())
	}
	up := fraction(c.g.Count(world.Up, world.Succeeded), c.g.Total())
	idle, _ := c.idle()
	idling := ""
	if idle > 0 {
		idling = fmt.Sprintf("; %s idle", phrase.Count(idle, "GPU"))
	}
	thieves := c.thieves(lost)
	code, tail := answer.MemberLost, "and there is no room for "+phrase.Verb(len(names), "it", "them")
	if c.Place != nil && c.Place.Fits() {
		tail = "and there is room again"
	}
	if len(thieves) > 0 {
		code, tail = answer.SlotStolen, "and "+thieves[0].String()+" took the room"
	}
	when := ""
	if !l.since.IsZero() {
		when = fmt.Sprintf(" %s ago", phrase.Age(c.w.Age(l.since)))
	}
	where := ""
	if l.node != "" {
		where = " on " + l.node
	}
	f := found(answer.StageLife, code, answer.Degraded, answer.Nobody, "%s run: %s %s lost%s%s, %s%s", up, phrase.Names(names), phrase.Verb(len(names), "was", "were"), where, when, tail, idling).
		fact("lost", names).fact("idleGPUs", idle).since(l.since)
	if l.how != "" {
		f.detail("%s: %s", l.Name(), l.how)
	}
	for _, h := range thieves {
		for _, p := range h.Pods {
			if p.Status.StartTime != nil {
				f.detail("%s took %s %s ago", h, p.Spec.NodeName, phrase.Age(c.w.Age(p.Status.StartTime.Time)))
			}
		}
	}
	return f
}

// thieves are the holders that came after the loss onto nodes that the member may use.
func (c *climb) thieves(lost []lostMember) []*world.Holder {
	since := lost[0].since
	if since.IsZero() || len(c.Party.Roles) == 0 || c.Matrices[c.Party.Roles[0].Name].Rows == nil {
		return nil
	}
	nodes := mayUse(c.Matrices[c.Party.Roles[0].Name])
	device := phrase.Device(fit.Request(c.Party.Roles[0].Pod))
	var all []*world.Holder
	for _, h := range c.others() {
		for _, p := range h.Pods {
			if p.Status.StartTime != nil && p.Status.StartTime.After(since) && slices.Contains(nodes, p.Spec.NodeName) && (device == "" || fit.Amount(device, fit.Request(p)[device]) > 0) {
				all = append(all, h)
				break
			}
		}
	}
	return all
}

// bypassed reports whether the pods use a scheduler that does not read what declares their gang.
func (c *climb) bypassed() bool {
	d := c.g.Decl
	if d == nil || d.Key.Dialect == gang.Native || d.Kind.Kind == "" {
		return false
	}
	if flag := c.gangSchedulerFlag(); flag != "" {
		return flag != c.g.Scheduler
	}
	for _, e := range c.w.Events(c.g.Kind.Kind, c.g.Meta.Namespace, c.g.Meta.Name) {
		if strings.HasSuffix(e.Reason, "PodTemplateSchedulerName") {
			return true
		}
	}
	return c.g.Scheduler == corev1.DefaultSchedulerName && d.Key.Dialect != gang.SchedulerPlugins
}

func (c *climb) gangBypassed() *Finding {
	g := c.g
	var waiting []string
	for _, m := range g.Members {
		if !m.Bound() && m.State != world.Succeeded {
			waiting = append(waiting, m.Name())
		}
	}
	idle, since := c.idle()
	gangScheduler := c.gangSchedulerFlag()
	if gangScheduler == "" {
		gangScheduler = string(g.Decl.Key.Dialect)
	}
	f := found(answer.StageScheduler, answer.GangBypassed, answer.Degraded, answer.User, "%s members were placed one by one by %s, which does not read their %s: they hold %s while %s waits",
		fraction(g.Count(world.Placed, world.Up), g.Total()), g.Scheduler, describe(*g.Decl), phrase.Count(idle, "GPU"), phrase.Names(waiting)).
		fact("scheduler", g.Scheduler).fact("gangScheduler", gangScheduler).fact("waiting", waiting).fact("idleGPUs", idle).since(since).
		detail("leave schedulerName out, or set it to %s, and submit again", gangScheduler)
	if c.Place != nil && len(c.Party.Roles) > 0 {
		r := c.look(c.w.Cluster(), c.hardest(c.Place))
		for _, line := range c.holdersOn(r.nodes, r.name) {
			f.detail("%s", line)
		}
	}
	return f
}

// incomplete: some members have a node, the others never had one.
func (c *climb) incomplete() *Finding {
	idle, since := c.idle()
	return found(answer.StageLife, answer.MemberLost, answer.Degraded, answer.Nobody, "%s members have a node and the others find none: %s idle",
		fraction(c.g.Count(world.Placed, world.Up), c.g.Total()), phrase.Count(idle, "GPU")).
		fact("idleGPUs", idle).since(since).detail("%s", c.holdingLine())
}
