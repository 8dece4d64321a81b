package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/setup/imagename"
)

// kueueController finds why Kueue does not act on a job that it suspends, or whose pods it holds: it is down, or it makes no Workload for the job, without which it never resumes it.
func kueueController(c *stage.Context, out *stage.Result) {
	if !(c.Gang.Suspended && queueing.Managed(c.View, c.Gang) || queueing.HeldByGate(c.Gang) && queueing.Installed(c.View)) {
		return
	}
	all := component.Running(c.View, component.Kueue(), func(image string) bool { return imagename.Base(image) == "kueue" })
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
	if !c.Gang.Suspended && (c.Gang.Count(gang.Missing) > 0 || c.Gang.Created() < c.Gang.Min) || !c.View.Snap.CanList("workloads."+kueue.Group, c.Gang.Meta.Namespace) {
		return // of a group of pods it makes one when all are there
	}
	has, left := workloads(c)
	if has {
		return
	}
	var f *stage.Finding
	if c.Gang.Suspended {
		f = classMissing(c)
	}
	if f == nil && len(all) > 0 && (!c.View.Assumed || len(left) > 0) && c.View.Age(completeSince(c)) > operatorSilent && queued(c) {
		f = noWorkload(c, all[0], left)
	}
	if f != nil {
		out.NoPods = c.Gang.Suspended
		out.Add(f)
	}
}

// workloads reports whether there is a Workload of the job, of its pods, or of what its controller makes of it, which has its name as a rule. Left are those of earlier jobs of
// the name that are gone.
func workloads(c *stage.Context) (has bool, left []*unstructured.Unstructured) {
	g := c.Gang
	if c.View.Workload(g.Job) != nil || slices.ContainsFunc(g.ExistingPods(), func(p *corev1.Pod) bool { return len(c.View.WorkloadsOf(gang.IdentityOf(p))) > 0 }) {
		return true, nil
	}
	type owner struct{ namespace, name string }
	type byOwnerName struct{}
	owned := view.Once(c.View, byOwnerName{}, func() map[owner][]*unstructured.Unstructured {
		owned := map[owner][]*unstructured.Unstructured{}
		for _, u := range c.View.Snap.Custom[kueue.Kind("Workload")] {
			for _, ref := range u.GetOwnerReferences() {
				of := owner{u.GetNamespace(), ref.Name}
				owned[of] = append(owned[of], u)
			}
		}
		return owned
	})
	all := owned[owner{g.Meta.Namespace, g.Meta.Name}]
	if g.MadeAs != "" && g.MadeAs != g.Meta.Name {
		all = slices.Concat(all, owned[owner{g.Meta.Namespace, g.MadeAs}])
	}
	others := c.View.WorkloadsOf(gang.IdentityOf(&g.Meta)) // of other gangs of the job
	for _, u := range all {
		switch {
		case slices.Contains(others, u):
		case queueing.Abandoned(c.View, u):
			left = append(left, u)
		case !queueing.Ownerless(c.View, u):
			return true, nil
		}
	}
	return false, left
}

// completeSince is from when Kueue could have made a Workload: since the job was made, or the last of its pods.
func completeSince(c *stage.Context) time.Time {
	at := c.Gang.Meta.CreationTimestamp.Time
	for _, p := range c.Gang.ExistingPods() {
		at = view.Later(at, p.CreationTimestamp.Time)
	}
	return at
}

// queued reports whether the LocalQueue of the job exists: where it does not, that is for the stage of queues to report.
func queued(c *stage.Context) bool {
	return queueing.Object(c.View, "LocalQueue", c.Gang.Meta.Namespace, queueing.LocalQueue(c.View, c.Gang, nil)) != nil
}

// warning is the latest one that a controller of Kueue has reported of the job; nil if there is none.
func warning(c *stage.Context) *view.Event {
	events := c.View.EventsAbout(c.Gang.Kind.GroupKind(), &c.Gang.Meta)
	i := slices.IndexFunc(events, func(e view.Event) bool { return e.Warning && strings.HasSuffix(e.By, "-kueue-controller") })
	if i < 0 || c.View.Assumed {
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
	nearest := suggest.NearestOrOnly(name, have)
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

// noWorkload finds that Kueue, whose Deployment is given, has made no Workload for a job that it should admit. What an earlier job of the name has left may be in its way.
func noWorkload(c *stage.Context, d *appsv1.Deployment, left []*unstructured.Unstructured) *stage.Finding {
	g, never := c.Gang, "resumes it"
	if !g.Suspended {
		never = "lifts the scheduling gate of its pods"
	}
	f := stage.Found(answer.OperatorDown, "%s runs (%s, %d/%d ready) but has made no Workload for %s for %s, so it never %s: its integration of %ss is not enabled, or fails",
		bareName(c, d), c.TitleOf("Deployment", d), d.Status.ReadyReplicas, component.Replicas(d), g.Title(), phrase.Age(c.View.Age(completeSince(c))), never, g.Kind.Kind).
		See(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".metadata.labels").
		Run(command.DeploymentLog(d))
	if len(left) == 0 || len(left) > command.MaxObjects {
		return withReport(c, f)
	}
	var names, commands []string
	for _, u := range left {
		names, commands = append(names, c.NameOf("Workload", u)), append(commands, command.Kubectl(u.GetNamespace(), "delete", "workload."+kueue.Group, u.GetName()))
	}
	f.Message = strings.TrimSuffix(f.Message, "is not enabled, or fails") + fmt.Sprintf("may fail for Workload %s, which an earlier %s of its name has left", phrase.Names(names), g.Kind.Kind)
	return withReport(c, f.Fact("left", names).Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.Admin, Text: "remove what is left of jobs that are gone: " + phrase.Verb(len(names), "Workload ", "Workloads ") + phrase.Names(names), Change: map[string]any{"workloads": names}, Command: command.Then(commands...)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.WithoutObjects(s, kueue.Kind("Workload"), left)
		},
	}))
}
