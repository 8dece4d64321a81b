package stages

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/setup/argv"
)

// Scheduler is what is known of the scheduler behind a schedulerName.
type Scheduler struct {
	Deployments []*appsv1.Deployment
	Leases      []*coordinationv1.Lease
	// LastSeen is its last sign of life: a lease renewed or an event. LastWord is the latest event alone.
	LastSeen, LastWord time.Time
	// BoundBefore is true if pods of this schedulerName have a node.
	BoundBefore bool
}

// known are schedulers that need no flag to have a name: a part of the image's name with its path, and the schedulerName.
var known = []product{
	{"vc-scheduler", "volcano"}, {"kube-batch", "kube-batch"}, {"koord-scheduler", "koord-scheduler"}, {"yunikorn", "yunikorn"},
	{"kai-scheduler/scheduler", "kai-scheduler"},
}

// product is a scheduler that people know by its image.
type product struct{ image, name string }

func (p product) is(container corev1.Container) bool {
	path, _, _ := strings.Cut(container.Image, "@")
	return strings.Contains(path, p.image)
}

// FindScheduler collects the signs of a scheduler.
func FindScheduler(w *view.View, name string) Scheduler {
	s := Scheduler{}
	leases := map[string]bool{name: true}
	if name == corev1.DefaultSchedulerName {
		leases["kube-scheduler"] = true
	}
	for _, d := range w.Snap.Deployments {
		for _, container := range d.Spec.Template.Spec.Containers {
			if serves(d, container, name) {
				s.Deployments = append(s.Deployments, d)
				leases[d.Name], leases[flag(container, "leader-elect-resource-name")] = true, true
				break
			}
		}
	}
	for _, l := range w.Snap.Leases {
		if leases[l.Name] && l.Spec.RenewTime != nil {
			s.Leases = append(s.Leases, l)
			s.LastSeen = latest(s.LastSeen, l.Spec.RenewTime.Time)
		}
	}
	for _, e := range w.Snap.Events {
		if e.ReportingController == name || e.Source.Component == name {
			at := latest(e.LastTimestamp.Time, e.EventTime.Time)
			if e.Series != nil {
				at = latest(at, e.Series.LastObservedTime.Time)
			}
			s.LastWord = latest(s.LastWord, at)
		}
	}
	s.LastSeen = latest(s.LastSeen, s.LastWord)
	s.BoundBefore = slices.ContainsFunc(w.Snap.Pods, func(p *corev1.Pod) bool { return p.Spec.SchedulerName == name && p.Spec.NodeName != "" })
	return s
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// serves reports whether a container is the scheduler of that name.
func serves(d *appsv1.Deployment, container corev1.Container, name string) bool {
	if slices.Contains(argv.List(container, "serve"), name) { // gangctl's own, which answers to further names
		return true
	}
	if given := flag(container, "scheduler-name"); given != "" {
		return given == name
	}
	for _, k := range known {
		if k.name == name && (k.is(container) || d.Name == k.name) {
			return true
		}
	}
	return d.Name == name || container.Name == name
}

// flag is the value that counts of a flag of a container; "" without.
func flag(container corev1.Container, name string) string {
	value, _ := argv.Last(container, name)
	return value
}

// Down reports whether the scheduler gives no sign of life: its lease has run out, or none of its pods is ready and nothing
// else says that it lives.
func (s Scheduler) Down(now time.Time) bool {
	if !s.LastSeen.IsZero() && now.Sub(s.LastSeen) <= deadAfter {
		return false
	}
	if len(s.Deployments) > 0 && allDown(s.Deployments) {
		return true
	}
	return len(s.Leases) > 0
}
