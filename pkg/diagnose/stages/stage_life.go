package stages

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// life looks at a gang of which some members hold nodes while others cannot: what was lost, who took it, and what idles.
func (c *climb) life() state {
	g := c.g
	holding := g.Count(gang.Starting, gang.Running, gang.Lost, gang.Terminating)
	if holding == 0 {
		c.history()
	}
	if holding == 0 || g.Count(gang.Starting, gang.Running, gang.Succeeded) >= g.Min || c.has(answer.Fits) || g.End != nil {
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
func Held(g *gang.Gang) (int64, time.Time) {
	var n int64
	var since time.Time
	for _, m := range g.Members {
		if m.State != gang.Starting && m.State != gang.Running {
			continue
		}
		request := placement.Request(m.Pod)
		device := podrequest.Device(request)
		n += placement.Amount(device, request[device])
		if m.Pod.Status.StartTime != nil {
			since = latest(since, m.Pod.Status.StartTime.Time)
		}
	}
	return n, since
}

func (c *climb) holdingLine() string {
	n, _ := c.idle()
	return fmt.Sprintf("%s of %d members have a node and hold %s for nothing", fmt.Sprint(c.g.Count(gang.Starting, gang.Running)), c.g.Total(), phrase.Count(n, "GPU"))
}

// bypassed reports whether the pods use a scheduler that does not read what declares their gang.
func (c *climb) bypassed() bool {
	d := c.g.Decl
	flag := c.gangSchedulerFlag()
	if d == nil || d.Key.Dialect == gang.Kueue {
		return false
	}
	if d.Key.Dialect == gang.Native {
		return flag != "" && flag != c.g.Scheduler // the default scheduler reads this dialect where that is switched on
	}
	for _, r := range dialect.Readers() {
		if r.Dialect == d.Key.Dialect && dialect.Affinity(r, c.g.Scheduler) > 0 {
			return false
		}
	}
	if flag != "" {
		return flag != c.g.Scheduler
	}
	for _, e := range c.w.Events(c.g.Kind.Kind, c.g.Meta.Namespace, c.g.Meta.Name) {
		if strings.HasSuffix(e.Reason, "PodTemplateSchedulerName") {
			return true
		}
	}
	return c.g.Scheduler == corev1.DefaultSchedulerName && d.Kind.Kind != "" && d.Key.Dialect != gang.SchedulerPlugins
}

func (c *climb) gangBypassed() *Finding {
	g := c.g
	var waiting []string
	for _, m := range g.Members {
		if !m.Bound() && m.State != gang.Succeeded {
			waiting = append(waiting, m.Name())
		}
	}
	idle, since := c.idle()
	gangScheduler := c.gangSchedulerFlag()
	if gangScheduler == "" {
		gangScheduler = string(g.Decl.Key.Dialect)
	}
	f := found(answer.StageScheduler, answer.GangBypassed, answer.Degraded, answer.User, "%s members were placed one by one by %s, which does not read their %s: they hold %s while %s waits",
		fraction(g.Count(gang.Starting, gang.Running), g.Total()), g.Scheduler, describe(*g.Decl), phrase.Count(idle, "GPU"), phrase.Names(waiting)).
		fact("scheduler", g.Scheduler).fact("gangScheduler", gangScheduler).fact("waiting", waiting).fact("idleGPUs", idle).since(since).
		detail("leave schedulerName out, or set it to %s, and submit again", gangScheduler)
	if c.Place != nil && len(c.Party.Roles) > 0 {
		r := c.lacking()
		for _, line := range c.holdersOn(r.NodeNames(), r.Resource) {
			f.detail("%s", line)
		}
	}
	return f
}

// incomplete: some members have a node, the others never had one.
func (c *climb) incomplete() *Finding {
	idle, since := c.idle()
	tail := "the others find none"
	if c.Place != nil && c.Place.Fits() {
		tail = "the others have room, but are not placed"
	}
	return found(answer.StageLife, answer.MemberLost, answer.Degraded, answer.Nobody, "%s members have a node and %s: %s idle",
		fraction(c.g.Count(gang.Starting, gang.Running), c.g.Total()), tail, phrase.Count(idle, "GPU")).
		fact("idleGPUs", idle).since(since).detail("%s", c.holdingLine())
}
