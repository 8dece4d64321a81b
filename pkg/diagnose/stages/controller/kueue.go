package controller

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// kueueController finds why Kueue does not act on a job that it suspends, or whose pods it holds: it is down, or it makes no Workload for the job, without which it never resumes it.
func kueueController(c *stage.Context, out *stage.Result) {
	if !(c.Gang.Suspended && queueing.Managed(c.View, c.Gang) || queueing.HeldByGate(c.Gang) && queueing.Installed(c.View)) {
		return
	}
	all := component.Running(c.View, component.Kueue(), func(image string) bool { return component.Repository(image) == "kueue" })
	if len(all) > 0 && component.AllDown(all) {
		out.Add(down(c, c.Gang.Job, all[0]))
		return
	}
	if len(all) > 0 && !c.View.Assumed {
		if l := staleKueue(c, all[0]); l != nil {
			out.Add(leaderLost(c, all[0], l))
			return
		}
	}
	if f := notResumed(c); f != nil {
		out.NoPods = true
		out.Add(f)
		return
	}
	if !c.Gang.Suspended || !c.View.Snap.CanList("workloads."+kueue.Group, c.Gang.Meta.Namespace) || hasWorkload(c) {
		return
	}
	f := classMissing(c)
	if f == nil && len(all) > 0 && !c.View.Assumed && ageOf(c, c.Gang.Job) > operatorSilent && queued(c) {
		f = noWorkload(c, all[0])
	}
	if f != nil {
		out.NoPods = true
		out.Add(f)
	}
}

// hasWorkload reports whether there is a Workload of the job, or of what its controller makes of it, which has its name as a rule.
func hasWorkload(c *stage.Context) bool {
	names := []string{c.Gang.Meta.Name, cmp.Or(c.Gang.MadeAs, c.Gang.Meta.Name)}
	return c.View.Workload(c.Gang.Job) != nil || slices.ContainsFunc(c.View.Snap.Custom[kueue.Kind("Workload")], func(u *unstructured.Unstructured) bool {
		return u.GetNamespace() == c.Gang.Meta.Namespace && slices.ContainsFunc(u.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return slices.Contains(names, ref.Name) })
	})
}

// queued reports whether the LocalQueue of the job exists: where it does not, that is for the stage of queues to report.
func queued(c *stage.Context) bool {
	return queueing.Object(c.View, "LocalQueue", c.Gang.Meta.Namespace, queueing.LocalQueue(c.View, c.Gang, nil)) != nil
}

// warning is the latest one that a controller of Kueue has reported of the job; nil if there is none.
func warning(c *stage.Context) *view.Event {
	events := c.View.Events(c.Gang.Kind.Kind, c.Gang.Meta.Namespace, c.Gang.Meta.Name)
	i := slices.IndexFunc(events, func(e view.Event) bool { return e.Warning && strings.HasSuffix(e.By, "-kueue-controller") })
	if i < 0 || c.View.Assumed || events[i].Last.Before(c.Gang.Meta.CreationTimestamp.Time) {
		return nil
	}
	return &events[i]
}

// withReport adds what Kueue has reported of the job.
func withReport(c *stage.Context, f *stage.Finding) *stage.Finding {
	if e := warning(c); e != nil {
		f.Detail("Kueue reported %s ago: %s", phrase.Age(c.View.Age(e.Last)), e.Message).SeeRef("v1/Event/"+c.Gang.Meta.Namespace, ".message").SinceTime(e.First)
	}
	return f
}

// classMissing finds that the job names a WorkloadPriorityClass that does not exist. Where none is seen at all, only Kueue itself shows that.
func classMissing(c *stage.Context) *stage.Finding {
	g, name := c.Gang, c.Gang.Meta.Labels[kueue.PriorityLabel]
	var have []string
	for _, u := range c.View.Snap.Custom[kueue.Kind("WorkloadPriorityClass")] {
		have = append(have, u.GetName())
	}
	e := warning(c)
	if name == "" || slices.Contains(have, name) || len(have) == 0 && (e == nil || e.Reason != "WorkloadPriorityClassNotFound") {
		return nil
	}
	f := stage.Found(answer.PriorityMissing, "WorkloadPriorityClass %q does not exist, so Kueue makes no Workload for %s and never resumes it; there are: %s", name, g.Meta.Name, phrase.Names(have)).
		At(answer.StageController).See(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".metadata.labels").Fact("class", name).Fact("have", have)
	nearest := suggest.Nearest(name, have)
	if nearest == "" && len(have) == 1 {
		nearest = have[0]
	}
	if withReport(c, f); nearest == "" {
		return f
	}
	return f.Fix(patch.Labelled(g, kueue.PriorityLabel, nearest, "priorityClass", "use WorkloadPriorityClass "+nearest))
}

// notResumed finds that Kueue has admitted a job long ago, and has not resumed it: it fails to start what it makes of the job.
func notResumed(c *stage.Context) *stage.Finding {
	g, wl := c.Gang, c.View.Workload(c.Gang.Job)
	if wl == nil || !g.Suspended || c.View.Assumed || !kueue.Admitted(wl) {
		return nil
	}
	admitted, _ := gang.ConditionIn(wl, "Admitted")
	checked := !slices.ContainsFunc(kueue.ChecksOf(wl), func(check kueue.Check) bool { return check.State != kueue.CheckReady })
	if _, evicted := kueue.Eviction(wl); evicted || !checked || c.View.Age(admitted.At) <= operatorSilent {
		return nil
	}
	return withReport(c, stage.Found(answer.OperatorDown, "Kueue has admitted %s %s ago and has not resumed it: its integration of %ss fails, or another controller suspends it again", g.Meta.Name, phrase.Age(c.View.Age(admitted.At)), g.Kind.Kind).
		See(wl.GetAPIVersion(), wl.GetKind(), wl, ".status.conditions").SinceTime(admitted.At).Run(command.Kubectl(g.Meta.Namespace, "describe", g.Ref())))
}

// noWorkload finds that Kueue, whose Deployment is given, has made no Workload for a job that it should admit.
func noWorkload(c *stage.Context, d *appsv1.Deployment) *stage.Finding {
	g := c.Gang
	f := stage.Found(answer.OperatorDown, "%s runs (%s, %d/%d ready) but has made no Workload for %s for %s, so it never resumes it: its integration of %ss is not enabled, or fails",
		bareName(c, d), c.TitleOf("Deployment", d), d.Status.ReadyReplicas, component.Replicas(d), g.Meta.Name, phrase.Age(ageOf(c, g.Job)), g.Kind.Kind).
		See(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".metadata.labels").
		Run(command.Kubectl(d.Namespace, "logs", "deployment/"+d.Name, "--tail=100"))
	return withReport(c, f)
}
