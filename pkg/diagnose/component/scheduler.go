package component

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/setup/argv"
)

// Scheduler is what is known of the scheduler behind a schedulerName.
type Scheduler struct {
	Deployments []*appsv1.Deployment
	Leases      []*coordinationv1.Lease
	// LastSeen is its last sign of life: a lease renewed or an event. LastEvent is the latest event alone.
	LastSeen, LastEvent time.Time
	// AliveSince is when it began to look for gangs, as far as its lease and its pods show: what it did not do before proves nothing.
	AliveSince time.Time
	// BoundBefore is true if pods of this schedulerName have a node. In a cluster in which something is assumed, such as that pods are made
	// again, it is true also if those that there are were found to have no place.
	BoundBefore bool
}

// Down reports whether the scheduler gives no sign of life: its lease has run out, or none of its pods is ready and nothing
// else shows that it lives.
func (s Scheduler) Down(now time.Time) bool {
	if !s.LastSeen.IsZero() && now.Sub(s.LastSeen) <= DeadAfter {
		return false
	}
	if len(s.Deployments) > 0 && AllDown(s.Deployments) {
		return true
	}
	return len(s.Leases) > 0
}

// products are schedulers that need no flag to have a name: a part of the image's name with its path, and the schedulerName.
var products = []product{
	{"vc-scheduler", "volcano"}, {"kube-batch", "kube-batch"}, {"koord-scheduler", "koord-scheduler"}, {"yunikorn", "yunikorn"},
	{"kai-scheduler/scheduler", "kai-scheduler"},
}

// product is a scheduler that people know by its image.
type product struct{ image, name string }

func (p product) is(container corev1.Container) bool {
	path, _, _ := strings.Cut(container.Image, "@")
	return strings.Contains(path, p.image)
}

// FindScheduler collects the signs of a scheduler. A cluster has few schedulers and many gangs.
func FindScheduler(w *view.View, name string) Scheduler {
	type scheduler string
	return view.Once(w, scheduler(name), func() Scheduler { return findScheduler(w, name) })
}

func findScheduler(w *view.View, name string) Scheduler {
	s := Scheduler{}
	leases := map[string]bool{name: true}
	if name == corev1.DefaultSchedulerName {
		leases["kube-scheduler"] = true
	}
	for _, d := range w.Snap.Deployments {
		for _, container := range d.Spec.Template.Spec.Containers {
			if serves(d, container, name) {
				s.Deployments = append(s.Deployments, d)
				leases[d.Name], leases[Flag(container, "leader-elect-resource-name")] = true, true
				break
			}
		}
	}
	for _, l := range w.Snap.Leases {
		if leases[l.Name] && l.Spec.RenewTime != nil {
			s.Leases = append(s.Leases, l)
			s.LastSeen = view.Later(s.LastSeen, l.Spec.RenewTime.Time)
			if l.Spec.AcquireTime != nil {
				s.AliveSince = view.Later(s.AliveSince, l.Spec.AcquireTime.Time)
			}
		}
	}
	for _, e := range w.Snap.Events {
		if e.ReportingController == name || e.Source.Component == name {
			at := view.Later(e.LastTimestamp.Time, e.EventTime.Time)
			if e.Series != nil {
				at = view.Later(at, e.Series.LastObservedTime.Time)
			}
			s.LastEvent = view.Later(s.LastEvent, at)
		}
	}
	s.LastSeen = view.Later(s.LastSeen, s.LastEvent)
	s.AliveSince = view.Later(s.AliveSince, runningSince(w, s.Deployments))
	s.BoundBefore = slices.ContainsFunc(w.Snap.Pods, func(p *corev1.Pod) bool { return p.Spec.SchedulerName == name && p.Spec.NodeName != "" }) || judged(w.Before(), name)
	s.Deployments, s.Leases = slices.Clip(s.Deployments), slices.Clip(s.Leases) // who appends gets lists of their own
	return s
}

// runningSince is when the first of the containers of some Deployments that run did start; zero if none is seen.
func runningSince(w *view.View, deployments []*appsv1.Deployment) time.Time {
	var first time.Time
	for _, d := range deployments {
		for _, pod := range selected(w, d.Namespace, d.Spec.Selector) {
			for _, s := range pod.Status.ContainerStatuses {
				if r := s.State.Running; r != nil && (first.IsZero() || r.StartedAt.Time.Before(first)) {
					first = r.StartedAt.Time
				}
			}
		}
	}
	return first
}

// judged reports whether some scheduler has written into a pod of a schedulerName that it found no place for it, as far as a view shows; nil
// shows nothing.
func judged(w *view.View, name string) bool {
	return w != nil && slices.ContainsFunc(w.Snap.Pods, func(p *corev1.Pod) bool {
		return p.Spec.SchedulerName == name && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != corev1.PodReasonSchedulingGated
		})
	})
}

// serves reports whether a container is the scheduler of that name.
func serves(d *appsv1.Deployment, container corev1.Container, name string) bool {
	if slices.Contains(argv.List(container, "serve"), name) { // gangctl's own, which answers to further names
		return true
	}
	if given := Flag(container, "scheduler-name"); given != "" {
		return given == name
	}
	for _, k := range products {
		if k.name == name && (k.is(container) || d.Name == k.name) {
			return true
		}
	}
	return d.Name == name || container.Name == name
}

// GangScheduler is the name under which a scheduler serves gangs of a dialect here: preferred, unless no Deployment serves that
// name while one serves another. That is the one that an operator gives to its gangs, or one of the program called preferred.
func GangScheduler(w *view.View, d gang.Dialect, preferred string) string {
	for _, name := range append([]string{preferred}, gangSchedulers(w.Snap.Deployments, preferred)...) {
		// Not by its lease, which may be called like the program, whatever name that serves.
		if reads(d, name) && len(FindScheduler(w, name).Deployments) > 0 {
			return name
		}
	}
	return preferred
}

// Reads reports whether a scheduler is known to read a dialect: by its name, or by the program that serves that name here. Ours reads all of them.
func Reads(v *view.View, d gang.Dialect, name string) bool {
	r, ok := dialect.ReaderOf(d)
	if !ok {
		return false
	}
	if dialect.Affinity(r, name) > 0 {
		return true
	}
	for _, deployment := range FindScheduler(v, name).Deployments {
		for _, container := range deployment.Spec.Template.Spec.Containers {
			if !serves(deployment, container, name) {
				continue
			}
			if runs(deployment, container, ours) {
				return true
			}
			if slices.ContainsFunc(products, func(k product) bool { return k.is(container) && dialect.Affinity(r, k.name) > 0 }) {
				return true
			}
		}
	}
	return false
}

// ours is the program of gangctl's own scheduler.
const ours = "gang-scheduler"

// reads reports whether a scheduler is not known to read another dialect.
func reads(d gang.Dialect, scheduler string) bool {
	for _, r := range dialect.Readers() {
		if r.Dialect == d {
			return dialect.Affinity(r, scheduler) >= 0
		}
	}
	return false
}

// gangSchedulers are the names that Deployments give to schedulers of gangs: operators first.
func gangSchedulers(deployments []*appsv1.Deployment, preferred string) []string {
	var byOperator, deployed []string
	for _, d := range deployments {
		for _, container := range d.Spec.Template.Spec.Containers {
			if name := Flag(container, "gang-scheduler-name"); name != "" && name != "none" {
				byOperator = append(byOperator, name)
			}
			if name := Flag(container, "scheduler-name"); name != "" && runs(d, container, preferred) {
				deployed = append(deployed, name)
			}
		}
	}
	return append(byOperator, deployed...)
}

// runs reports whether a container runs the program of a name.
func runs(d *appsv1.Deployment, container corev1.Container, name string) bool {
	return d.Name == name || container.Name == name || strings.Contains(Repository(container.Image), name)
}

// SchedulerNames are the schedulers that give a sign of life, sorted.
func SchedulerNames(v *view.View) []string {
	names := map[string]bool{}
	for _, d := range v.Snap.Deployments {
		for _, container := range d.Spec.Template.Spec.Containers {
			names[Flag(container, "scheduler-name")] = true
			for _, name := range argv.List(container, "serve") {
				names[name] = true
			}
			for _, k := range products {
				if k.is(container) {
					names[k.name] = true
				}
			}
		}
	}
	for _, l := range v.Snap.Leases {
		if l.Name == "kube-scheduler" {
			names[corev1.DefaultSchedulerName] = true
		}
	}
	for _, e := range v.Snap.Events {
		if e.Reason == "FailedScheduling" || e.Reason == "Scheduled" {
			names[cmp.Or(e.ReportingController, e.Source.Component)] = true
		}
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}
