// Package queue is the stage of a diagnosis that evaluates whether the queue admits the gang.
package queue

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kai"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
)

// Evaluate looks at the queue that admits the gang before any scheduler does.
func Evaluate(c *stage.Context, out *stage.Result) stage.State {
	state := evaluate(c, out)
	if len(out.Findings) == 0 && len(c.Findings) == 0 && queueing.Elsewhere(c.View, c.Gang) {
		out.Add(dispatched(c, c.View.Workload(c.Gang.Job)))
	}
	return state
}

func evaluate(c *stage.Context, out *stage.Result) stage.State {
	var s stage.State
	if queueing.Managed(c.View, c.Gang) || queueing.Installed(c.View) && queueing.HeldByGate(c.Gang) {
		s = kueueQueue(c, out)
	}
	kind, name, ok := queueing.Queue(c.View, c.Gang)
	if !ok {
		elastic(c, out)
		computed := koordinatorQuota(c, out)
		if len(out.Findings) == 0 && !quotaReported(c, out) && !computed {
			unseenQuota(c, out)
		}
		if s.Name != "" {
			return s
		}
		return stage.Skipped("no queue")
	}
	return objectQueue(c, out, kind, name)
}

func objectQueue(c *stage.Context, out *stage.Result, kind schema.GroupKind, name string) stage.State {
	if out.Denied(c, "queues."+kind.Group, "") {
		unseen(c, out, name)
		return stage.Unknown("queues may not be listed")
	}
	queues := c.View.Snap.Custom[kind]
	if len(queues) == 0 {
		unseen(c, out, name)
		return stage.Unknown("no queue was seen at all") // every such scheduler has at least its default one
	}
	i := slices.IndexFunc(queues, func(u *unstructured.Unstructured) bool { return u.GetName() == name })
	if i < 0 {
		out.Add(queueNotFound(c, name, queues))
		return stage.OK("")
	}
	q := queues[i]
	f := gang.Fields{Object: q}
	if status := f.String("status", "state"); status != "" && status != "Open" {
		out.Add(queueClosed(c, kind, q, status))
	}
	var children []string
	for _, other := range queues {
		if queueing.Parent(other) == name {
			children = append(children, other.GetName())
		}
	}
	if len(children) > 0 && name != volcano.RootQueue {
		out.Add(queueNotLeaf(c, q, children))
	}
	if r, _ := queueing.RefusedForQueue(c.View, c.Gang); r.Tried && len(out.Findings) == 0 { // what was reported before may have changed
		queueRefused(c, out, name)
	}
	ours := component.Ours(c.View, c.Gang.Scheduler) // which has no queues: a gang that is admitted is placed, whatever others use
	if !ours || queueing.Gated(c.Gang) {
		capacity(c, out, kind, q)
	}
	if kind == kai.QueueKind() && len(out.Findings) == 0 {
		overQuota(c, out, name)
	}
	if kind == volcano.QueueKind() && queueing.Gated(c.Gang) && !out.Has(answer.QueueClosed, answer.QueueQuota, answer.QueueTooSmall, answer.ReservedByStuck) {
		before := len(out.Findings)
		if reserved(c, out, q); len(out.Findings) == before && !overused(c, out) {
			reported(c, out, name)
		}
	}
	if kind == volcano.QueueKind() {
		askedElsewhere(c, out, queues)
	}
	return stage.OK(name)
}

// askedElsewhere adds to what the queue keeps a gang waiting for that its job asks for another one, where Volcano does not look for that.
func askedElsewhere(c *stage.Context, out *stage.Result, queues []*unstructured.Unstructured) {
	d, asked := c.Gang.Decl, c.Gang.Meta.Annotations[volcano.QueueAnnotation]
	if d == nil || asked == "" || asked == d.Queue || !volcano.OwnGroup(*d) || !slices.ContainsFunc(queues, func(q *unstructured.Unstructured) bool { return q.GetName() == asked }) {
		return
	}
	told := false
	for i := range out.Findings {
		f := &out.Findings[i]
		if f.Code != answer.QueueQuota && f.Code != answer.QueueTooSmall && f.Code != answer.QueueClosed {
			continue
		}
		if f.Code == answer.QueueTooSmall {
			f.As(answer.Blocked, answer.User).Never = false
		}
		change := map[string]any{"spec": map[string]any{"queue": asked}}
		if !told {
			f.Message += fmt.Sprintf("; its %s asks for queue %s in an annotation of its own, where Volcano does not look", c.Gang.Kind.Kind, asked)
			f.Detail("the annotation %s belongs into the metadata of its pod template", volcano.QueueAnnotation)
			told = true
		}
		f.Fixes = append([]stage.Fix{{
			Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: "move it to queue " + asked, Change: map[string]any{"queue": asked}, Command: command.MergePatch(d.Key.Namespace, "podgroup."+d.Kind.Group, d.Key.Name, change)},
			Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
				return whatif.Edit(s, d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name, func(u *unstructured.Unstructured) { whatif.Set(u, asked, "spec", "queue") })
			},
		}}, f.Fixes...)
	}
}

// unseen finds what is reported of a queue that is not seen, or remarks that it has not admitted the gang.
func unseen(c *stage.Context, out *stage.Result, name string) {
	if queueRefused(c, out, name); len(out.Findings) == 0 && queueing.Gated(c.Gang) && c.View.Age(c.Gang.Decl.Created) > fresh {
		out.Note("queue %s has not admitted it, as its PodGroup is Pending: why is not to be seen without the queue", name)
	}
}

// queueRefused finds that the API server refused the gang's object for the sake of its queue, and what is seen of the queue does not show why.
func queueRefused(c *stage.Context, out *stage.Result, name string) {
	r, refused := queueing.RefusedForQueue(c.View, c.Gang)
	if !refused {
		return
	}
	f := stage.Found(r.Code, "the PodGroup of %s cannot be created in queue %s: %s", c.Gang.Meta.Name, name, strings.TrimSpace(r.Message)).Fact("queue", name)
	switch {
	case r.Tried:
		f.Fact("code", r.Status)
	case c.Gang.Decl != nil:
		f.Message = fmt.Sprintf("queue %s does not take %s: %s", name, c.Gang.Meta.Name, strings.TrimSpace(r.Message))
	}
	if !r.Tried {
		f.SinceTime(r.First).Detail("%s; the queue itself is not seen", reportedAt(c, r))
	}
	out.Add(f)
}

// refusedNow adds to a finding about a queue that the API server refuses the gang's object for its sake.
func refusedNow(c *stage.Context, f *stage.Finding) {
	if r, refused := queueing.RefusedForQueue(c.View, c.Gang); refused && r.Tried {
		f.Detail("the API server, queried just now: %s", strings.TrimSpace(r.Message))
	} else if refused {
		f.Detail("%s: %s", reportedAt(c, r), strings.TrimSpace(r.Message))
	}
}

// reportedAt reads like: reported 3m ago. A condition may have been for as long as it is known.
func reportedAt(c *stage.Context, r queueing.Refusal) string {
	if r.Still {
		return strings.TrimSuffix("a condition reports it, for "+phrase.Age(c.View.Age(r.First)), ", for "+phrase.Age(0))
	}
	return fmt.Sprintf("reported %s ago", phrase.Age(c.View.Age(r.Last)))
}

func queueNotFound(c *stage.Context, name string, queues []*unstructured.Unstructured) *stage.Finding {
	have := leaves(queues)
	effect := "the scheduler silently ignores the gang"
	if reportsOnQueue(c) {
		effect = "its scheduler does not place the gang"
	}
	f := stage.Found(answer.QueueNotFound, "queue %q does not exist, and %s; there are: %s", name, effect, phrase.Names(have)).
		Fact("queue", name).Fact("have", have)
	if c.Gang.Decl == nil {
		f.Message = fmt.Sprintf("queue %q does not exist, so the PodGroup of %s cannot be created; there are: %s", name, c.Gang.Meta.Name, phrase.Names(have))
		refusedNow(c, f)
	}
	nearest := suggest.NearestOrOnly(name, have)
	if nearest == "" {
		return f
	}
	return f.Detail("did you mean %s?", nearest).Fix(moveTo(c, nearest))
}

// leaves are the names of the queues that gangs may be in: those above others only have these.
func leaves(queues []*unstructured.Unstructured) (names []string) {
	above := map[string]bool{}
	for _, q := range queues {
		f := gang.Fields{Object: q}
		above[f.String("spec", "parentQueue")], above[f.String("spec", "parent")] = true, true
	}
	for _, q := range queues {
		if !above[q.GetName()] {
			names = append(names, q.GetName())
		}
	}
	return names
}

// reportsOnQueue reports whether the scheduler has said of the gang that its queue is not there, as KAI does and Volcano does not.
func reportsOnQueue(c *stage.Context) bool {
	about := func(message string) bool { return strings.Contains(strings.ToLower(message), "queue") }
	if c.Gang.Decl == nil {
		return false
	}
	events := slices.Concat(c.View.PodEvents(c.Gang), c.View.GroupEvents(c.Gang.Decl))
	return slices.ContainsFunc(c.Gang.Decl.Conditions, func(cond gang.Condition) bool { return about(cond.Message) }) ||
		slices.ContainsFunc(events, func(e view.Event) bool { return (e.Refuses() || e.Warning) && about(e.Message) })
}

// moveTo puts the gang into another queue.
func moveTo(c *stage.Context, queue string) stage.Fix {
	g, edit := c.Gang, func(spec *whatif.Spec) { spec.Queue = queue }
	fix := stage.Fix{
		Action: patch.Commanded(answer.Action{Kind: answer.Fix, By: answer.User, Text: "use queue " + queue, Change: map[string]any{"queue": queue}}, g, edit),
		Edit:   edit,
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			n := s
			if d := g.Decl; d != nil {
				n = whatif.Edit(n, d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name, func(u *unstructured.Unstructured) {
					whatif.Set(u, queue, "spec", "queue")
				})
			}
			return whatif.Edit(whatif.AcceptingProbes(n, "PodGroup"), g.Kind.GroupKind(), g.Meta.Namespace, g.Meta.Name, func(u *unstructured.Unstructured) {
				if g.Queue != "" {
					whatif.Set(u, queue, "spec", "runPolicy", "schedulingPolicy", "queue")
				}
			})
		},
	}
	if d := g.Decl; d != nil {
		fix.Command = command.MergePatch(d.Key.Namespace, strings.ToLower(d.Kind.Kind)+"."+d.Kind.Group, d.Key.Name, map[string]any{"spec": map[string]any{"queue": queue}})
	}
	return fix
}

func queueClosed(c *stage.Context, kind schema.GroupKind, q *unstructured.Unstructured, status string) *stage.Finding {
	name := q.GetName()
	f := stage.Found(answer.QueueClosed, "queue %s is %s: nothing new is admitted", name, status).
		See(q.GetAPIVersion(), q.GetKind(), q, ".status.state").Fact("queue", name).Fact("state", status)
	if c.Gang.Decl == nil {
		f.Message = fmt.Sprintf("queue %s is %s, so the PodGroup of %s cannot be created", name, status, c.Gang.Meta.Name)
		refusedNow(c, f)
	}
	return f.Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.Admin, Text: "open queue " + name, Change: map[string]any{"queue": name, "state": "Open"},
			Command: "vcctl queue operate -n " + name + " -a open"},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			n := whatif.Edit(s, kind, "", name, func(u *unstructured.Unstructured) { whatif.Set(u, "Open", "status", "state") })
			return whatif.AcceptingProbes(n, "PodGroup")
		},
	})
}

func queueNotLeaf(c *stage.Context, q *unstructured.Unstructured, children []string) *stage.Finding {
	f := stage.Found(answer.QueueNotLeaf, "queue %s has queues below it (%s) and takes no gangs itself", q.GetName(), phrase.Names(children)).
		See(q.GetAPIVersion(), q.GetKind(), q, ".metadata.name").Fact("queue", q.GetName()).Fact("children", children)
	for _, child := range children[:min(len(children), 3)] {
		f.Fix(moveTo(c, child))
	}
	return f
}
