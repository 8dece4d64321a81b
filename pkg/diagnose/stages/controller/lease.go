package controller

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// staleLease is the lease by which an operator elects its leader, if it has not been renewed for long; nil also if the operator has acted since: it elects none any more.
func staleLease(c *stage.Context, job *gang.Job, d *appsv1.Deployment) *coordinationv1.Lease {
	of := job.Reader.Controller
	l := newestLease(c, d, func(name string) bool {
		return slices.Contains(of.Leases, name) || slices.ContainsFunc(of.Images, func(part string) bool { return strings.Contains(name, part) })
	})
	if l == nil || actedSince(c, job, l.Spec.RenewTime.Time) {
		return nil
	}
	return l
}

// newestLease is that of a Deployment which was renewed last, by the names that it may have besides that of the Deployment; nil if that is not long ago.
func newestLease(c *stage.Context, d *appsv1.Deployment, its func(name string) bool) *coordinationv1.Lease {
	var newest *coordinationv1.Lease
	for _, l := range c.View.Snap.Leases {
		if l.Namespace == d.Namespace && (l.Name == d.Name || its(l.Name)) && l.Spec.RenewTime != nil && (newest == nil || newest.Spec.RenewTime.Before(l.Spec.RenewTime)) {
			newest = l
		}
	}
	if newest == nil || c.View.Age(newest.Spec.RenewTime.Time) <= component.DeadAfter {
		return nil
	}
	return newest
}

// actedSince reports whether the controller of a job has done something after a time, and the minute in which it may have stopped: made a pod of the job, reported of it, or
// looked at a job that is younger.
func actedSince(c *stage.Context, job *gang.Job, at time.Time) bool {
	at = at.Add(component.DeadAfter)
	for _, p := range c.Gang.ExistingPods() {
		if p.CreationTimestamp.After(at) {
			return true
		}
	}
	return slices.ContainsFunc(c.View.MakerEvents(c.Gang.Job), func(e view.Event) bool { return job.Reader.Wrote(e.By) && e.Last.After(at) }) ||
		slices.ContainsFunc(c.View.Jobs(), func(other *gang.Job) bool {
			return other.Seen && other.Reader.Controller.Name == job.Reader.Controller.Name && other.Meta.CreationTimestamp.After(at)
		})
}

// staleKueue is the lease of Kueue, as staleLease is that of an operator: Workloads show what it does.
func staleKueue(c *stage.Context, d *appsv1.Deployment) *coordinationv1.Lease {
	l := newestLease(c, d, func(name string) bool { return strings.Contains(name, "kueue") })
	if l == nil {
		return nil
	}
	at := l.Spec.RenewTime.Add(component.DeadAfter)
	for _, u := range c.View.Snap.Custom[kueue.Kind("Workload")] {
		f := gang.Fields{Object: u}
		if u.GetCreationTimestamp().After(at) || slices.ContainsFunc(f.List("status", "conditions"), func(each map[string]any) bool { return gang.ConditionOf(each).At.After(at) }) {
			return nil
		}
	}
	return l
}
