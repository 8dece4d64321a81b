// Package podgroup is the stage of a diagnosis that evaluates what declares the gang.
package podgroup

import (
	"maps"
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Evaluate looks at what declares the gang: is it there, is it this job's, can its minimum be reached, do enough pods exist.
func Evaluate(c *stage.Context, out *stage.Result) stage.State {
	g := c.Gang
	if g.Sequential != "" && g.Count(gang.Missing, gang.NotDue) > 0 {
		out.Note("not all members are made at once: %s", g.Sequential)
	}
	comesLater(c, out)
	switch {
	case c.NoPods && g.Decl == nil:
		minimumOfJob(c, out) // what the job itself states needs no pods to be seen
		return stage.Skipped("the stages before come first")
	case g.Suspended && queueing.Managed(c.View, c.Gang) && g.Decl == nil:
		return stage.Skipped("made when Kueue admits the job")
	case g.Decl == nil && deniedGroups(c, out):
		return stage.Unknown("PodGroups may not be listed")
	case g.Decl == nil:
		if component.IgnoresPolicy(c.View, g) {
			out.Note("its schedulingPolicy has no effect: the operator runs without --gang-scheduler-name, makes no PodGroup, and members are placed one by one")
		}
		byWorkload(c, out)
		if component.WithoutGroup(g) {
			out.Note("the gang of %d that its spec.scheduling states is not in force, and members are placed one by one: %s", g.Min, component.NoGroup())
		} else if g.BatchJob != nil && g.Min < g.Total() && g.Named.Name == "" && g.MinMember == nil && g.Meant() == nil {
			out.Note("nothing declares its %d pods a gang: each starts as soon as it has a place, and numbers are those of the first", g.Total())
		}
		minimumOfJob(c, out)
		if !leftOver(c, out) {
			missing(c, out)
			unlabelled(c, out)
			if !out.NoPods { // which pods wait for is found
				quorum(c, out)
			}
		}
		return stage.OK("no gang is declared")
	}
	notes(c, out)
	if g.OfScheduler { // which is no minimum of the gang
		minimumOfJob(c, out)
		quorum(c, out)
		return stage.OK(c.Created())
	}
	if undeclared(c, out) {
		return stage.OK("")
	}
	stated(c, out)
	unread(c, out)
	unmodelled(c, out)
	foreign(c, out)
	minimum(c, out)
	membership(c, out)
	unequal(c, out)
	quorum(c, out)
	composite(c, out)
	alongside(c, out)
	return stage.OK(c.Created())
}

// undeclared finds that the pods name a group that does not exist, in a dialect in which pods can declare all by themselves, and do not.
func undeclared(c *stage.Context, out *stage.Result) bool {
	g := c.Gang
	byName := slices.ContainsFunc(g.Members, func(m gang.Member) bool { return m.Pod != nil && m.Pod.Labels[koordinatorGroup] != "" })
	if g.Problem == nil || g.Decl.Kind.Kind != "" || g.Decl.Key.Dialect != gang.Koordinator || !byName {
		return false
	}
	f := stage.Found(answer.PodGroupMissing, "the pods name PodGroup %s, which does not exist in namespace %s, and do not declare how many are needed", g.Named.Name, g.Named.Namespace).
		Fact("podGroup", g.Named.Name).Fact("dialect", string(g.Named.Dialect)).Run(listGroups(c))
	likeNamed(c, f)
	out.Add(createGroup(c, g.Named, f))
	return true
}

// Ignored remarks which group objects of a gang do not count.
func Ignored(v *view.View, g *gang.Gang, out *stage.Result) {
	for _, d := range g.Ignored {
		if component.Reads(v, d.Key.Dialect, g.Scheduler) {
			out.Note("%s %s is not read by scheduler %s, which reads %s first", stage.GroupKind(d), d.Key.Name, g.Scheduler, stage.DescribeGroup(*g.Decl))
			continue
		}
		out.Note("%s %s is not read by scheduler %s: %s counts", stage.GroupKind(d), d.Key.Name, g.Scheduler, stage.DescribeGroup(*g.Decl))
	}
	for _, d := range g.Unjoined {
		why := "as no pod names it"
		if component.Names(g, d) {
			why = "by scheduler " + g.Scheduler
		}
		out.Note("%s is not read, %s: %s counts", stage.DescribeGroup(d), why, stage.DescribeGroup(*g.Decl))
	}
}

// notes are remarks on the declaration that block nothing.
func notes(c *stage.Context, out *stage.Result) {
	g := c.Gang
	Ignored(c.View, g, out)
	if kept := c.View.Placeholders(g); len(kept) > 0 {
		nodes := map[string]bool{}
		for _, p := range kept {
			nodes[p.Spec.NodeName] = true
		}
		out.Note("YuniKorn keeps room for it by %s on %s, which members replace", phrase.Count(len(kept), "placeholder"), phrase.Names(slices.Sorted(maps.Keys(nodes))))
	}
	if len(g.Parts) > 0 {
		out.Note("%s has pods of several jobs, which start together: %s", g.Named.Name, phrase.Names(g.Parts))
	}
	if g.Problem != nil && (g.Decl.Key.Dialect != gang.Labels || len(g.ExistingPods()) == 0) {
		out.Note("%s", phrase.Shorten(g.Problem.Error(), maxProblem))
	}
	if d := g.Decl; !g.OfScheduler && g.MinMember != nil && *g.MinMember != d.MinMember && d.Kind.Kind != "" && d.Owner == g.Meta.UID {
		out.Note("the job requests a minimum of %d, but %s has %d, which counts", *g.MinMember, stage.DescribeGroup(*d), d.MinMember)
	}
	if g.Count(gang.Pending) > 0 {
		out.DeniedAny(c, "", component.ReaderUnknown(c.View, g.Named.Dialect, g.Scheduler)...)
	}
	if g.Count(gang.Starting, gang.Running) == 0 && g.Count(gang.Pending) > 0 && component.Bypassed(c.View, c.Gang) {
		out.Note("scheduler %s does not read %s: it places members one by one", g.Scheduler, stage.DescribeGroup(*g.Decl))
	}
}

// foreign finds that the object belongs to an earlier job of the same name.
func foreign(c *stage.Context, out *stage.Result) {
	if d := *c.Gang.Decl; c.Gang.Bare == nil && ofPredecessor(c, d) {
		out.Add(belongsToPredecessor(c, d))
	}
}

// leftOver finds that the operator makes a PodGroup before any pod, and that one of its name is there still, of an earlier job of the same name.
func leftOver(c *stage.Context, out *stage.Result) bool {
	g := c.Gang
	if c.View.Assumed || len(g.ExistingPods()) > 0 || g.Count(gang.Missing) == 0 || !component.MakesGroups(c.View, g) {
		return false
	}
	for _, d := range c.View.Groups() {
		if d.Key.Namespace == g.Meta.Namespace && d.Key.Name == g.Meta.Name && ofPredecessor(c, d) {
			out.NoPods = true
			out.Add(belongsToPredecessor(c, d))
			return true
		}
	}
	return false
}

// ofPredecessor reports whether a group object is that of an earlier job. Pods may join the group of something else on purpose.
func ofPredecessor(c *stage.Context, d gang.Declaration) bool {
	return d.Key.Dialect != gang.Kueue && c.View.OfPredecessor(&d, c.Gang.Job)
}

func belongsToPredecessor(c *stage.Context, d gang.Declaration) *stage.Finding {
	return stage.Found(answer.PodGroupForeign, "%s belongs to a job that is gone: %s is another one of the same name", stage.DescribeGroup(d), c.Gang.Meta.Name).
		SeeGroup(d, ".metadata.ownerReferences").
		Run(c.Kubectl("delete", strings.ToLower(d.Kind.Kind)+"."+d.Kind.Group, d.Key.Name))
}
