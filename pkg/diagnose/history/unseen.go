package history

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/occurrence"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
)

// eventsKept is how long API servers keep events, unless configured otherwise.
const eventsKept = time.Hour

// unseen names what could not be seen, and so is missing from the report.
func unseen(w *view.View, g *gang.Gang, r *Report, events []*corev1.Event) []string {
	all := []string{}
	note := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, d := range w.Snap.Denied {
		text := "no right to list " + d.Resource
		if d.Verb != "" {
			text = "no right to " + d.Verb + " " + d.Resource
		}
		if len(d.ExceptNamespaces) > 0 {
			text += " outside of namespace " + phrase.Names(d.ExceptNamespaces)
		}
		note("%s%s", text, missing(d.Resource, len(d.ExceptNamespaces) > 0))
	}
	if gone := goneMembers(g); gone > 0 {
		note("%s of %d %s no pod any more: what happened to them is known from events only", phrase.Count(gone, "member"), g.Total(), phrase.Verb(int(gone), "has", "have"))
	}
	if w.Snap.CanList("events", g.Meta.Namespace) {
		eventsGone(w, g, events, note)
	}
	lost := int32(0)
	for _, m := range g.Members {
		if m.Pod == nil {
			continue
		}
		for _, s := range m.Pod.Status.ContainerStatuses {
			lost += max(0, s.RestartCount-1)
		}
	}
	if lost > 0 {
		note("%s of containers before their last restart: Kubernetes keeps one", phrase.Count(lost, "run"))
	}
	if r.Job.Command == "" {
		note("the command line that submitted it: gangctl did not, or it was too long to keep")
	}
	return all
}

// missing is what a report lacks where a kind may not be listed.
func missing(resource string, some bool) string {
	switch resource {
	case "nodes":
		return ": the placement map shows no accelerators, and no nodes but those of members"
	case "pods":
		if some {
			return ": who else holds nodes is not known"
		}
		return ": what became of the members is not known"
	case "events":
		return ": the messages and their times are not known"
	}
	return ""
}

// goneMembers is how many members of a gang that has ended, or goes on, have left no pod behind. Those of one that waits never
// had one.
func goneMembers(g *gang.Gang) int32 {
	if g.End == nil {
		return 0
	}
	return g.Count(gang.Missing)
}

// eventsGone reports from when on events are kept, if something of the job's life is before that.
func eventsGone(w *view.View, g *gang.Gang, events []*corev1.Event, note func(string, ...any)) {
	created := g.Meta.CreationTimestamp.Time
	if created.IsZero() || w.Now.Sub(created) <= eventsKept {
		if len(events) == 0 {
			note("events: there are none of this job")
		}
		return
	}
	var oldest time.Time
	for _, e := range w.Snap.Events {
		if at := occurrence.Last(e); oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	if oldest.IsZero() {
		note("events: there are none left in the namespace; an API server keeps them for an hour, unless configured otherwise")
		return
	}
	if oldest.After(created) {
		note("events before %s: an API server keeps them for an hour, unless configured otherwise", oldest.UTC().Format(time.RFC3339))
	}
}
