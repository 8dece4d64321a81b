package order

import (
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// mostPermitted is of how many gangs it is found out whether they have what another one needs.
const mostPermitted = 4

// permitted finds that the scheduler counts as taken what is free: it has given it to pods of another gang that wait in Permit until the others of that have a place. No object shows that; what does
// is that the scheduler has refused some pods of that gang, and not others, and reports that it lacks what is there.
func permitted(c *stage.Context) *stage.Finding {
	short := reportsShortage(c)
	if c.Diagnose == nil || short == nil {
		return nil
	}
	tried := 0
	for _, d := range c.View.Groups() {
		other := halfPlaced(c, d)
		if other == nil {
			continue
		}
		if tried++; tried > mostPermitted {
			return nil
		}
		why := c.Diagnose(other.Job)
		if why == nil || why.Placement == nil || why.Starts() {
			continue
		}
		left := &leftover{nodes: c.Cluster()}
		left.put(c, why)
		if !c.Fit(left.nodes, nil).Fits() {
			return keptInPermit(c, other, why, *short)
		}
	}
	return nil
}

// reportsShortage is a report of the scheduler, not older than what it is about, that nodes have too little of something; nil without.
func reportsShortage(c *stage.Context) *view.Event {
	since := c.UnchangedSince()
	for _, e := range c.View.PodEvents(c.Gang) {
		if e.Refuses() && c.View.Age(e.Last) <= reportsWithin && e.Last.After(since) && strings.Contains(e.Message, "Insufficient ") {
			return &e
		}
	}
	return nil
}

// halfPlaced is the gang of a group object, if the gang's scheduler has it, it came first, and only some of its pods that wait were refused. It is nil for any other.
func halfPlaced(c *stage.Context, d gang.Declaration) *gang.Gang {
	if d.Key.Dialect != gang.SchedulerPlugins && d.Key.Dialect != gang.Native || c.Gang.Decl != nil && d.Key == c.Gang.Decl.Key {
		return nil
	}
	job := c.View.JobOfGroup(d)
	if job == nil || job.End != nil || !job.Meta.CreationTimestamp.Time.Before(c.Gang.Meta.CreationTimestamp.Time) {
		return nil
	}
	gangs := c.View.Gangs(job)
	i := slices.IndexFunc(gangs, func(g *gang.Gang) bool { return g.Decl != nil && g.Decl.Key == d.Key })
	if i < 0 || gangs[i].Scheduler != c.Gang.Scheduler || gangs[i].Placed() {
		return nil
	}
	if waits, refused := unrefused(gangs[i]); len(waits) == 0 || refused == 0 {
		return nil
	}
	return gangs[i]
}

// unrefused are the members that wait and that the scheduler has not refused; refused is how many it has.
func unrefused(g *gang.Gang) (waits []gang.Member, refused int) {
	for _, m := range g.Members {
		switch {
		case m.State != gang.Pending:
		case gang.Refusal(m.Pod) == nil:
			waits = append(waits, m)
		default:
			refused++
		}
	}
	return waits, refused
}

// keptInPermit is the finding that another gang has what is free.
func keptInPermit(c *stage.Context, other *gang.Gang, why *stage.Diagnosis, short view.Event) *stage.Finding {
	waits, _ := unrefused(other)
	name := c.GroupName(*other.Decl)
	code, never := answer.ReservedByOthers, ""
	if stage.NeverStarts(why) {
		code, never = answer.ReservedByStuck, ", and can never start as it is"
	}
	f := stage.Found(code, "it fits by what is free, and scheduler %s counts that as taken: it keeps room for %d of %s of %s, which wait until the others have a place%s", c.Gang.Scheduler, len(waits),
		phrase.Count(other.Total(), "member"), name, never).At(answer.StageOrder).Fact("ahead", name)
	f.Inferred = true
	if why.Primary != nil {
		text, details := c.WhyOther(why)
		f.Detail("why %s waits: %s", name, text)
		for _, line := range details {
			f.Detail("  %s", line)
		}
	}
	f.Detail("the scheduler reported %s ago: %s", phrase.Age(c.View.Age(short.Last)), short.Message)
	if never != "" {
		f.Fix(c.Drop(other.Job, name))
	} else {
		f.Detail("it gives that back when the others of %s have no place in time, and may take it again", name)
	}
	return f
}
