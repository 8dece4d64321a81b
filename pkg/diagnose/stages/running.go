package stages

import (
	"context"
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/job"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/podgroup"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/queue"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/start"
	"github.com/gangctl/gangctl/pkg/gang"
)

// runningNotes are what is worth a remark in a gang that runs.
func runningNotes(ctx context.Context, v *view.View, g *gang.Gang, opts Options) []string {
	var r stage.Result
	job.Notes(v, g, &r)
	if g.Decl != nil {
		podgroup.Ignored(v, g, &r)
	}
	if b, bypassed := component.BypassOf(v, g); bypassed && len(b.Placed) > 0 && b.Group.Kind.Kind != "" && !b.Undeclared && !b.Unnamed {
		r.Note("its members were placed one by one by %s, which does not read their %s: that has no effect, but for what it may reserve", phrase.Names(b.Placed), stage.DescribeGroup(b.Group))
	}
	if g.Deleted() {
		r.Note("it is being deleted, for %s", phrase.Age(v.Age(g.Meta.DeletionTimestamp.Time)))
	}
	if queueing.Elsewhere(v, g) {
		r.Note("%s", queue.RunsElsewhere(v, g))
	} else if n := g.Total() - g.Count(gang.Running, gang.Succeeded); n > 0 {
		r.Note("%d of %d members are not up; the gang needs %d", n, g.Total(), g.Min)
		notUp(stage.NewContext(v, g, opts.Reader, tools(ctx, opts), diagnoser(ctx, v, opts)), &r)
	}
	start.Restarts(v, g, &r, gang.Running, gang.Starting, gang.Failed)
	if e := stage.LatestEvent(v.EventsAbout(g.Kind.GroupKind(), &g.Meta), "FailedCreateService"); e != nil {
		r.Note("a Service by which members find each other could not be created, as reported %s ago: %s", phrase.Age(v.Age(e.Last)), e.Message)
	}
	return r.Notes
}

// maxNotUp is how many members are described that a gang which runs does without.
const maxNotUp = 4

// notUp remarks why members are not up that a gang which runs does without: it may not get far without its master.
func notUp(c *stage.Context, out *stage.Result) {
	shown, refusals := 0, refusal.Of(c.View, c.Gang)
	for _, m := range c.Gang.Members {
		if m.State == gang.Running || m.State == gang.Succeeded || m.State == gang.NotDue {
			continue
		}
		if shown++; shown > maxNotUp {
			break
		}
		why := "is " + strings.ToLower(string(m.State))
		switch refused := refusalOf(m); {
		case m.Pod == nil:
			why = "has no pod"
			of := func(r refusal.Refusal) bool { role := refusal.RoleOf(c.Gang, r); return role == "" || role == m.Role }
			if i := slices.IndexFunc(refusals, of); i >= 0 {
				why += ": its creation was refused, last " + phrase.Age(c.View.Age(refusals[i].Last)) + " ago: " + refusals[i].Message
			}
		case m.State == gang.Pending && refused != "":
			why = "has no node: " + refused
		case m.State == gang.Pending:
			why = "has no node yet"
		case m.State == gang.Starting || m.State == gang.Failed:
			if f := start.Member(c, m); f != nil {
				why = f.Message
			}
		}
		out.Note("%s: %s", m.Name(), why)
	}
	for _, role := range c.Gang.Roles {
		is := func(m gang.Member) bool {
			return m.Role == role.Name && (m.State == gang.Running || m.State == gang.Succeeded || m.State == gang.NotDue)
		}
		if role.Replicas > 0 && !slices.ContainsFunc(c.Gang.Members, is) {
			out.Note("no %s is up: the others may wait for it, though the gang has its minimum", phrase.Member(role.Name))
		}
	}
}

// refusalOf is what a scheduler reports of a member that it has no place for; "" if it reports nothing.
func refusalOf(m gang.Member) string {
	if m.Pod == nil {
		return ""
	}
	if refusal := gang.Refusal(m.Pod); refusal != nil {
		return strings.Join(strings.Fields(refusal.Message), " ")
	}
	return ""
}
