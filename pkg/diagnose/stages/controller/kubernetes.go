package controller

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// managers is the lease by which the controllers of Kubernetes itself elect a leader, and their namespace. A provider may keep it where it is not seen.
const managers, managersHome = "kube-controller-manager", "kube-system"

// byKubernetes finds that a Job, or what makes the pods of a gang without one, waits for a controller of Kubernetes itself which is down, or for another that it was left to.
func byKubernetes(c *stage.Context, out *stage.Result, seen bool) stage.State {
	g, state := c.Gang, stage.OK("run by Kubernetes itself")
	switch {
	case g.Maker != nil:
		state = stage.OK("pods are made by " + g.Maker.String())
	case g.LeftTo != "":
		state = stage.OK("left to " + g.LeftTo)
	case len(g.Parts) > 0:
		state = stage.OK("") // the jobs that are one gang may be of several
	}
	if c.NoPods || c.View.Assumed || g.Suspended || g.End != nil || g.Count(gang.Missing) == 0 || queueing.Elsewhere(c.View, g) {
		return state
	}
	age := ageOf(c, g.Job)
	switch l := staleManagers(c); {
	case g.LeftTo != "" && !seen && age > operatorSilent:
		out.NoPods = true
		out.Add(leftAlone(c))
	case g.LeftTo == "" && l != nil && age > operatorNotices:
		out.NoPods = true
		out.Add(stage.Found(answer.OperatorDown, "%s, which makes the pods, gives no sign of life: its lease was last renewed %s ago", managers, phrase.Age(c.View.Age(l.Spec.RenewTime.Time))).
			See("coordination.k8s.io/v1", "Lease", l, ".spec.renewTime").SinceTime(l.Spec.RenewTime.Time).Detail("%s", c.TitleOf("Lease", l)).
			Run(command.Kubectl(managersHome, "get", "pods", "-o", "wide")))
	}
	return state
}

// leftAlone finds that the controller to which a Job was left has not acted on it.
func leftAlone(c *stage.Context) *stage.Finding {
	g := c.Gang
	return stage.Found(answer.OperatorDown, "%s is left to %s (spec.managedBy), which has not acted on it for %s: Kubernetes makes no pods of it", g.Meta.Name, g.LeftTo, phrase.Age(ageOf(c, g.Job))).
		See(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".spec.managedBy").Fact("managedBy", g.LeftTo).
		Detail("leave managedBy out, or set it to %s, and submit again, if no such controller is to run: the field cannot be changed", batchv1.JobControllerName)
}

// staleManagers is the lease of the controllers of Kubernetes, if it has not been renewed for long and none of them has made anything since that shows; else nil.
func staleManagers(c *stage.Context) *coordinationv1.Lease {
	i := slices.IndexFunc(c.View.Snap.Leases, func(l *coordinationv1.Lease) bool { return l.Namespace == managersHome && l.Name == managers })
	if i < 0 || c.View.Snap.Leases[i].Spec.RenewTime == nil || c.View.Age(c.View.Snap.Leases[i].Spec.RenewTime.Time) <= component.DeadAfter {
		return nil
	}
	at := c.View.Snap.Leases[i].Spec.RenewTime.Add(component.DeadAfter)
	for _, p := range c.Gang.ExistingPods() {
		if p.CreationTimestamp.After(at) {
			return nil
		}
	}
	if slices.ContainsFunc(c.View.Snap.Jobs, func(j *batchv1.Job) bool { return j.Status.StartTime != nil && j.Status.StartTime.After(at) }) ||
		slices.ContainsFunc(c.View.MakerEvents(c.Gang.Job), func(e view.Event) bool { return strings.HasSuffix(e.By, "-controller") && e.Last.After(at) }) {
		return nil
	}
	return c.View.Snap.Leases[i]
}
