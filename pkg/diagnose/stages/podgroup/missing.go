package podgroup

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/kind/volcanojob"
)

// missing finds that the pods name a group that is not there, or the operator should have made one and did not. A refusal that
// is about the queue is left to the queue stage.
func missing(c *stage.Context, out *stage.Result) {
	g := c.Gang
	probe, probed := queueing.GroupProbe(c.View, c.Gang)
	expected, byOperator := g.Named.Name != "" && needsObject(g.Named.Dialect), component.MakesGroups(c.View, c.Gang)
	switch {
	case probed && !probe.Accepted():
		out.NoPods = true
		if refusedForQueue(c) {
			return
		}
		refused(c, out, probe)
	case !probed && !expected && refusedForQueue(c) && !queueing.IsOpen(c.View, c.Gang):
		out.NoPods = true
	case !probed && !expected && byOperator && groupRefusal(c) != "":
		out.NoPods = true
		if r, was := queueing.RefusedForQueue(c.View, c.Gang); was && r.Message == groupRefusal(c) {
			out.Add(openAgain(c, r))
			return
		}
		refused(c, out, snapshot.Probe{Message: groupRefusal(c)})
	case expected:
		f := stage.Found(answer.PodGroupMissing, "the pods name PodGroup %s, which does not exist in namespace %s", g.Named.Name, g.Named.Namespace).
			Fact("podGroup", g.Named.Name).Fact("dialect", string(g.Named.Dialect)).
			Run(listGroups(c))
		likeNamed(c, f)
		out.Add(createGroup(c, g.Named, f))
	case byOperator && !c.View.Assumed && g.Count(gang.Missing) > 0 && c.View.Age(g.Meta.CreationTimestamp.Time) > stage.CreationGrace:
		out.NoPods = true
		if f := unserved(c); f != nil {
			out.Add(f)
			return
		}
		if queueing.HoldsUngrouped(c.View, c.Gang) {
			return // the stage of queues finds it
		}
		out.Add(stage.Found(answer.PodGroupMissing,
			"the operator makes a PodGroup first and has made none for %s in %s: only its log has the reason", g.Meta.Name, phrase.Age(c.View.Age(g.Meta.CreationTimestamp.Time))).As(answer.Blocked, answer.Admin).
			See(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".metadata.creationTimestamp").Fact("gangScheduler", component.OperatorScheduler(c.View, c.Gang)).Run(component.OperatorLog(c.View, c.Gang)))
	case ungrouped(c):
		f := stage.Found(answer.PodGroupMissing, "its pods name no PodGroup: the controller of Volcano makes one for such pods and writes its name on them, and has not in %s; scheduler %s does not see them before",
			phrase.Age(c.View.Age(lastCreated(c))), g.Scheduler).As(answer.Blocked, answer.Admin).Fact("gangScheduler", g.Scheduler)
		for _, d := range component.ControllersOf(c.View, volcanojob.Reader()) {
			f.Run(command.DeploymentLog(d))
		}
		out.Add(f)
	}
}

// ungrouped reports whether Volcano, where it is there, has pods that name no PodGroup, of which its controller should have made one long ago.
func ungrouped(c *stage.Context) bool {
	g := c.Gang
	there := len(component.ControllersOf(c.View, volcanojob.Reader()))+len(component.Serving(c.View, volcano.SchedulerName)) > 0
	return there && g.Scheduler == volcano.SchedulerName && g.Named.Name == "" && g.Meant() == nil && !c.View.Assumed && g.Count(gang.Pending) > 0 && c.View.Age(lastCreated(c)) > stage.ActsWithin
}

// groupRefusal is the message of the latest event by which what makes the gang's pods reports that it could not make its PodGroup; "" where there is none, or it is old.
func groupRefusal(c *stage.Context) string {
	if c.View.Assumed {
		return ""
	}
	for _, e := range c.View.MakerEvents(c.Gang.Job) {
		if e.Warning && strings.Contains(e.Reason, "PodGroup") && !e.Last.Before(c.Gang.Meta.CreationTimestamp.Time) && c.View.Age(e.Last) <= refusal.RetryWithin {
			return e.Message
		}
	}
	return ""
}

// openAgain finds that a gang was refused for the sake of its queue, which is open now: what makes its PodGroup waits longer each time before it tries again.
func openAgain(c *stage.Context, r queueing.Refusal) *stage.Finding {
	ago := c.View.Age(r.Last)
	return stage.Found(answer.BelowQuorum, "the PodGroup of %s was refused, last %s ago, for its queue, which is open now: its controller tries again within %s",
		c.Gang.Meta.Name, phrase.Age(ago), phrase.Age(refusal.RetryWithin-ago)).
		Detail("%s", r.Message).SinceTime(r.First).Fact("exist", c.Gang.Created()).Fact("needed", c.Gang.Min)
}

// refusedForQueue reports whether the stage of queues finds why there is no PodGroup.
func refusedForQueue(c *stage.Context) bool {
	_, refused := queueing.RefusedForQueue(c.View, c.Gang)
	return refused
}

// unserved finds that the cluster serves no PodGroups of the format that the operator makes for its gang scheduler; nil if it does.
func unserved(c *stage.Context) *stage.Finding {
	name := component.OperatorScheduler(c.View, c.Gang)
	reader, known := dialect.ReaderOf(gang.SchedulerPlugins) // which operators make for schedulers that they do not know
	for _, r := range dialect.Readers() {
		if slices.Contains(r.Schedulers, name) {
			reader = r
		}
	}
	if !known || len(reader.Kinds) == 0 || c.View.Snap.Server.Resources == nil || slices.ContainsFunc(reader.Kinds, func(kind gang.Served) bool {
		return c.View.Snap.Serves(schema.GroupResource{Group: kind.Group, Resource: kind.Resource}, kind.Kind)
	}) {
		return nil
	}
	crd := reader.Kinds[0].Resource + "." + reader.Kinds[0].Group
	return stage.Found(answer.PodGroupMissing, "the operator makes a PodGroup first, for scheduler %s, and the cluster does not serve them: CRD %s is not installed", name, crd).As(answer.Blocked, answer.Admin).
		Fact("crd", crd).Fact("gangScheduler", name).Run(command.Kubectl("", "get", "crd", crd))
}

// listGroups is the command that lists the objects of the format in which the pods name their gang: several API groups may serve podgroups.
func listGroups(c *stage.Context) string {
	resource := "podgroups"
	if kind, ok := groupServed(c, c.Gang.Named.Dialect); ok {
		resource += "." + kind.Group
	} else if reader, known := dialect.ReaderOf(c.Gang.Named.Dialect); known && len(reader.Kinds) > 0 {
		resource = reader.Kinds[0].Resource + "." + reader.Kinds[0].Group
	}
	return c.Kubectl("get", resource, "-o", "wide")
}

// needsObject reports whether a dialect needs more than labels on pods.
func needsObject(d gang.Dialect) bool {
	r, _ := dialect.ReaderOf(d)
	return len(r.Kinds) > 0 && r.FromPods == nil
}

// createGroup offers to make the gang object that the pods name, for as many members as the job needs, and leaves it to the
// job to take it away again. Nothing is offered where the cluster does not serve such objects.
func createGroup(c *stage.Context, key gang.Key, f *stage.Finding) *stage.Finding {
	g := c.Gang
	kind, ok := groupServed(c, key.Dialect)
	if !ok || g.Bare != nil {
		return f
	}
	n := int64(g.Total())
	if g.MinMember != nil {
		n = int64(*g.MinMember)
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(key.Namespace)
	u.SetName(key.Name)
	owner := map[string]any{"apiVersion": g.Kind.GroupVersion().String(), "kind": g.Kind.Kind, "name": g.Meta.Name, "uid": string(g.Meta.UID)}
	u.Object["metadata"].(map[string]any)["ownerReferences"] = []any{owner}
	u.Object["spec"] = map[string]any{"minMember": n}
	if key.Dialect == gang.Native {
		u.Object["spec"] = map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": n}}}
	}
	text, err := u.MarshalJSON()
	if err != nil {
		return f
	}
	return f.Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: fmt.Sprintf("create PodGroup %s for %d members", key.Name, n), Change: map[string]any{"podGroup": key.Name, "minMember": n},
			Command: command.Pipe("echo "+shell.Quote(strings.TrimSpace(string(text))), c.Kubectl("create", "-f", "-"))},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			changed := s.Clone()
			changed.Custom[kind.GroupKind()] = append(slices.Clone(changed.Custom[kind.GroupKind()]), u.DeepCopy())
			return changed
		},
	})
}

// groupServed is the kind of the gang objects of a dialect, in the version that the cluster serves.
func groupServed(c *stage.Context, of gang.Dialect) (schema.GroupVersionKind, bool) {
	reader, _ := dialect.ReaderOf(of)
	for _, kind := range reader.Kinds {
		for _, resource := range c.View.Snap.Server.Resources {
			if version, ok := strings.CutPrefix(resource, kind.Resource+"."+kind.Group+"/"); ok && kind.Kind == "PodGroup" {
				return kind.WithVersion(version), true
			}
		}
	}
	return schema.GroupVersionKind{}, false
}

// likeNamed looks for the group that was meant, where the one that is named does not exist.
func likeNamed(c *stage.Context, f *stage.Finding) {
	named := c.Gang.Named
	var here, elsewhere []string
	for _, d := range c.View.Groups() {
		switch {
		case d.Key.Namespace == named.Namespace:
			here = append(here, d.Key.Name)
		case d.Key.Name == named.Name:
			elsewhere = append(elsewhere, d.Key.Namespace)
		}
	}
	elsewhere = slices.DeleteFunc(elsewhere, func(ns string) bool { return !c.Reader.Sees(ns) })
	for _, ns := range slices.Compact(elsewhere) {
		f.Detail("there is one of that name in namespace %s: a group and its pods must be in the same", ns)
	}
	if nearest := suggest.Nearest(named.Name, here); nearest != "" {
		f.Detail("did you mean %s?", nearest)
	}
}

// deniedGroups notes the lists of group objects, one of which may be this gang's.
func deniedGroups(c *stage.Context, out *stage.Result) bool {
	some := false
	for _, r := range dialect.Readers() {
		if r.Dialect != c.Gang.Named.Dialect && !(c.Gang.Named.Name == "" && component.MakesGroups(c.View, c.Gang)) {
			continue
		}
		for _, kind := range r.Kinds {
			some = out.Denied(c, schema.GroupResource{Group: kind.Group, Resource: kind.Resource}.String(), c.Gang.Meta.Namespace) || some
		}
	}
	return some
}
