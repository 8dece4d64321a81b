package check

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/cluster/occurrence"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/setup/argv"
)

// lately is how old a bind may be to count as a sign of life.
const lately = time.Hour

// lookalike reports whether a Deployment carries the labels of gangctl's own scheduler, or its name, as any may.
func lookalike(d *appsv1.Deployment) bool {
	labelled := d.Labels[install.LabelPartOf] == install.PartOf && d.Labels[install.LabelInstance] == install.SchedulerInstance
	return (labelled || d.Name == install.SchedulerInstance) && len(d.Spec.Template.Spec.Containers) > 0
}

// ours are the Deployments of gangctl's own scheduler.
func ours(f *Facts) []*appsv1.Deployment {
	return component.Trusted(f.View, component.Schedulers(), slices.DeleteFunc(slices.Clone(f.View.Snap.Deployments), func(d *appsv1.Deployment) bool { return !lookalike(d) }))
}

// served are the Deployments that answer to a schedulerName.
func served(f *Facts, name string) []*appsv1.Deployment {
	return component.FindScheduler(f.View, name, "").Deployments
}

// running are those of some Deployments that are not scaled to 0. One that is stopped is a sign of a scheduler that is down, and no rival of
// another: it binds and writes nothing.
func running(all []*appsv1.Deployment) []*appsv1.Deployment {
	return slices.DeleteFunc(slices.Clone(all), func(d *appsv1.Deployment) bool { return component.Replicas(d) == 0 })
}

// scheduler has the facts about one schedulerName.
type scheduler struct {
	component.Scheduler
	name string
	// bound is when it last bound a pod, according to events; zero without any.
	bound time.Time
}

// find collects the signs of a scheduler.
func find(f *Facts, name string) scheduler {
	s := scheduler{Scheduler: component.FindScheduler(f.View, name, ""), name: name}
	for _, e := range f.View.Snap.Events {
		if e.Reason == "Scheduled" && (e.ReportingController == name || e.Source.Component == name) {
			s.bound = view.Later(s.bound, occurrence.Last(e))
		}
	}
	return s
}

// known reports whether there is any sign that the scheduler exists.
func (s scheduler) known() bool {
	return len(s.Deployments) > 0 || len(s.Leases) > 0 || !s.LastSeen.IsZero() || s.BoundBefore
}

// alive reports whether it is there and nothing indicates that it is down.
func (s scheduler) alive(f *Facts) bool { return s.known() && !s.Down(f.View.Now) }

// names are all schedulerNames that anything in the cluster mentions, and those that are known to read gangs; sorted.
func names(f *Facts) []string {
	all := map[string]bool{install.SchedulerInstance: true, corev1.DefaultSchedulerName: true}
	for _, name := range dialect.Schedulers() {
		all[name] = true
	}
	for _, d := range f.View.Snap.Deployments {
		for _, c := range d.Spec.Template.Spec.Containers {
			if name, ok := argv.Last(c, "scheduler-name"); ok {
				all[name] = true
			}
		}
	}
	for _, d := range ours(f) {
		for _, c := range d.Spec.Template.Spec.Containers {
			for _, name := range argv.List(c, "serve") {
				all[name] = true
			}
		}
	}
	for _, o := range f.operators() {
		all[o.Mode().Scheduler] = true
	}
	for _, p := range f.View.Snap.Pods {
		all[p.Spec.SchedulerName] = true
	}
	delete(all, "")
	return sortedKeys(all)
}

// readsGangs reports whether a scheduler is known to read gangs of any format. The default one may read them, where a vendor replaced it,
// but nothing shows that.
func readsGangs(f *Facts, name string) bool {
	if name == corev1.DefaultSchedulerName {
		return false
	}
	if slices.ContainsFunc(served(f, name), func(d *appsv1.Deployment) bool { return slices.Contains(ours(f), d) }) || name == install.SchedulerInstance {
		return true
	}
	return slices.Contains(dialect.Schedulers(), name)
}
