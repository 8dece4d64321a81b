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

	"github.com/gangctl/gangctl/pkg/cluster/occurrence"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/setup/argv"
	"github.com/gangctl/gangctl/pkg/setup/imagename"
	"github.com/gangctl/gangctl/pkg/setup/rbac"
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
	// again, it is true also if those that there are were found to have no place, or are too young for that.
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

// byFramework is when the framework of kube-scheduler tries a pod again that waits, inCycles when schedulers do that look at all jobs in turn.
const (
	byFramework = "when a change in the cluster may help, and about 5 minutes after its last try at the latest"
	inCycles    = "in each of its cycles, which take seconds as a rule"
)

// products are schedulers that need no flag to have a name: a part of the image's name with its path, the schedulerName, and the namespace in
// which its releases run; when they try again; and whom it preempts for, where that is not any pod of a lower priority.
var products = []product{
	{"vc-scheduler", "volcano", "volcano-system", inCycles,
		"Volcano does so within a queue where its configuration has the action preempt, and between queues, by their weights, where it has reclaim; by default it has neither"},
	{"kube-batch", "kube-batch", "kube-batch", inCycles, "kube-batch does so where its configuration has the action preempt or reclaim"},
	{"koord-scheduler", "koord-scheduler", "koordinator-system", byFramework, ""},
	{"yunikorn", "yunikorn", "yunikorn", inCycles, "YuniKorn does so for queues that have less than they are guaranteed"},
	{"scheduler-plugins/kube-scheduler", "scheduler-plugins-scheduler", "scheduler-plugins", byFramework, ""},
	{"kai-scheduler/scheduler", "kai-scheduler", "kai-scheduler", inCycles, "KAI does so within a queue, and between queues by their shares"},
}

// product is a scheduler that people know by its image.
type product struct{ image, name, home, retries, preempts string }

func (p product) is(container corev1.Container) bool {
	path, _, _ := strings.Cut(container.Image, "@")
	return strings.Contains(path, p.image)
}

// FindScheduler collects the signs of a scheduler, for an answer about a namespace; "" for one about the whole cluster. A cluster has few
// schedulers and many gangs.
//
// Events of other namespaces are anybody's who has such a namespace: they count only where nothing better shows the scheduler.
func FindScheduler(w *view.View, name, namespace string) Scheduler {
	type scheduler string
	s := view.Once(w, scheduler(name), func() Scheduler { return findScheduler(w, name) })
	for of, at := range lastEvents(w, name) {
		if of == namespace || len(s.Deployments)+len(s.Leases) == 0 {
			s.LastEvent = view.Later(s.LastEvent, at)
		}
	}
	s.LastSeen = view.Later(s.LastSeen, s.LastEvent)
	return s
}

// lastEvents are the latest events of a scheduler, by namespace.
func lastEvents(w *view.View, name string) map[string]time.Time {
	type lastEventsOf string
	return view.Once(w, lastEventsOf(name), func() map[string]time.Time {
		events := map[string]time.Time{}
		for _, e := range w.Snap.Events {
			if e.ReportingController == name || e.Source.Component == name {
				events[e.Namespace] = view.Later(events[e.Namespace], occurrence.Last(e))
			}
		}
		return events
	})
}

func findScheduler(w *view.View, name string) Scheduler {
	s := Scheduler{}
	leases := map[string]bool{name: true}
	if name == corev1.DefaultSchedulerName {
		leases["kube-scheduler"] = true
	}
	s.Deployments = Trusted(w, Schedulers(), Serving(w, name))
	for _, d := range s.Deployments {
		container := d.Spec.Template.Spec.Containers[serving(d, name)]
		leases[d.Name], leases[Flag(container, "leader-elect-resource-name")] = true, true
	}
	for _, l := range w.Snap.Leases {
		if leases[l.Name] && l.Spec.RenewTime != nil {
			s.Leases = append(s.Leases, l)
		}
	}
	s.Leases = Trusted(w, Schedulers(), s.Leases)
	for _, l := range s.Leases {
		s.LastSeen = view.Later(s.LastSeen, l.Spec.RenewTime.Time)
		if l.Spec.AcquireTime != nil {
			s.AliveSince = view.Later(s.AliveSince, l.Spec.AcquireTime.Time)
		}
	}
	if slices.Contains(w.Snap.Schedulers, name) { // it may hold no lease
		s.LastSeen = w.Now
	}
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

// judgedWithin is in what time a scheduler that works has written into a pod that it found no place for it.
const judgedWithin = 10 * time.Second

// judged reports whether some scheduler has written into a pod of a schedulerName that it found no place for it, as far as a view shows, or had no
// time for that; nil shows nothing.
func judged(w *view.View, name string) bool {
	return w != nil && slices.ContainsFunc(w.Snap.Pods, func(p *corev1.Pod) bool {
		if p.Spec.SchedulerName != name {
			return false
		}
		return !p.CreationTimestamp.IsZero() && w.Age(p.CreationTimestamp.Time) < judgedWithin || refused(p)
	})
}

// refused reports whether a scheduler found no place for a pod.
func refused(p *corev1.Pod) bool {
	c := gang.Refusal(p)
	return c != nil && c.Reason != corev1.PodReasonSchedulingGated
}

// Serving are the Deployments that answer to a schedulerName, as they have it themselves.
func Serving(w *view.View, name string) (all []*appsv1.Deployment) {
	for _, d := range w.Snap.Deployments {
		if serving(d, name) >= 0 {
			all = append(all, d)
		}
	}
	return all
}

// serving is the index of the container of a Deployment that is the scheduler of a name; -1 if none is.
func serving(d *appsv1.Deployment, name string) int {
	return slices.IndexFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return serves(d, c, name) })
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
	for _, name := range append([]string{preferred}, gangSchedulers(w, preferred)...) {
		// Not by its lease, which may be called like the program, whatever name that serves.
		if reads(d, name) && len(FindScheduler(w, name, "").Deployments) > 0 {
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
	return slices.ContainsFunc(FindScheduler(v, name, "").Deployments, func(d *appsv1.Deployment) bool {
		container := d.Spec.Template.Spec.Containers[serving(d, name)]
		return runs(d, container, ours) ||
			slices.ContainsFunc(products, func(k product) bool { return k.is(container) && dialect.Affinity(r, k.name) > 0 })
	})
}

// RunsPlugins reports whether a scheduler is that of scheduler-plugins, by its name or by the image that serves the name here; known is false for one that may be,
// as nothing shows what it is.
func RunsPlugins(v *view.View, name string) (runs, known bool) {
	reader, _ := dialect.ReaderOf(gang.SchedulerPlugins)
	switch affinity := dialect.Affinity(reader, name); {
	case IsOurs(v, name) || affinity < 0:
		return false, true
	case affinity > 0:
		return true, true
	}
	runs = slices.ContainsFunc(FindScheduler(v, name, "").Deployments, func(d *appsv1.Deployment) bool {
		return strings.Contains(d.Spec.Template.Spec.Containers[serving(d, name)].Image, "scheduler-plugins/")
	})
	return runs, runs
}

// Ours reports whether the program that serves a schedulerName here is gangctl's own scheduler.
func Ours(v *view.View, name string) bool {
	return slices.ContainsFunc(FindScheduler(v, name, "").Deployments, func(d *appsv1.Deployment) bool {
		return runs(d, d.Spec.Template.Spec.Containers[serving(d, name)], ours)
	})
}

// PreemptsBy is by what other than priorities a scheduler decides whom it preempts, as a sentence; empty for one that preempts any pod of a lower priority, as
// kube-scheduler and gangctl's own do.
func PreemptsBy(v *view.View, name string) string {
	if Ours(v, name) {
		return ""
	}
	return productOf(v, name).preempts
}

// Retries is when a scheduler tries a gang again that waits, as the end of a sentence; empty where it is not known.
func Retries(v *view.View, name string) string {
	switch {
	case IsOurs(v, name):
		return "as soon as a node or a pod changes"
	case name == corev1.DefaultSchedulerName:
		return byFramework
	}
	return productOf(v, name).retries
}

// productOf is what people know a scheduler as, by its name or by the image that serves the name here; the zero value for another one.
func productOf(v *view.View, name string) product {
	serving := FindScheduler(v, name, "").Deployments
	for _, k := range products {
		if k.name == name || slices.ContainsFunc(serving, func(d *appsv1.Deployment) bool { return slices.ContainsFunc(d.Spec.Template.Spec.Containers, k.is) }) {
			return k
		}
	}
	return product{}
}

// IsOurs reports the same where no Deployment is seen, by the name under which it is installed.
func IsOurs(v *view.View, name string) bool {
	return Ours(v, name) || name == schedulerplugins.DefaultScheduler && len(FindScheduler(v, name, "").Deployments) == 0
}

// ours is the program of gangctl's own scheduler.
const ours = "gang-scheduler"

// reads reports whether a scheduler is not known to read another dialect.
func reads(d gang.Dialect, scheduler string) bool {
	r, known := dialect.ReaderOf(d)
	return known && dialect.Affinity(r, scheduler) >= 0
}

// gangSchedulers are the names that Deployments give to schedulers of gangs: operators first.
func gangSchedulers(w *view.View, preferred string) []string {
	byOperator := named(w, anyOperator(), func(_ *appsv1.Deployment, c corev1.Container) []string {
		return []string{gangScheduler(c)}
	})
	deployed := named(w, Schedulers(), func(d *appsv1.Deployment, c corev1.Container) []string {
		if !runs(d, c, preferred) {
			return nil
		}
		return []string{Flag(c, "scheduler-name")}
	})
	return append(byOperator, deployed...)
}

// named are the names that the containers of a component's Deployments have, in their order.
func named(w *view.View, c rbac.Component, of func(*appsv1.Deployment, corev1.Container) []string) []string {
	names := func(d *appsv1.Deployment) (all []string) {
		for _, container := range d.Spec.Template.Spec.Containers {
			all = append(all, of(d, container)...)
		}
		return slices.DeleteFunc(all, func(name string) bool { return name == "" || name == "none" })
	}
	with := slices.DeleteFunc(slices.Clone(w.Snap.Deployments), func(d *appsv1.Deployment) bool { return len(names(d)) == 0 })
	var all []string
	for _, d := range Trusted(w, c, with) {
		all = append(all, names(d)...)
	}
	return all
}

// runs reports whether a container runs the program of a name.
func runs(d *appsv1.Deployment, container corev1.Container, name string) bool {
	return d.Name == name || container.Name == name || strings.Contains(imagename.Base(container.Image), name)
}

// SchedulerNames are the schedulers that give a sign of life, for an answer about a namespace, sorted.
func SchedulerNames(v *view.View, namespace string) []string {
	names := map[string]bool{}
	for _, name := range named(v, Schedulers(), func(d *appsv1.Deployment, c corev1.Container) []string {
		all := append([]string{Flag(c, "scheduler-name")}, argv.List(c, "serve")...)
		if all[0] == "" && runs(d, c, ours) {
			all = append(all, ours) // which needs no flag
		}
		for _, k := range products {
			if k.is(c) {
				all = append(all, k.name)
			}
		}
		return all
	}) {
		names[name] = true
	}
	leases := slices.DeleteFunc(slices.Clone(v.Snap.Leases), func(l *coordinationv1.Lease) bool { return l.Name != "kube-scheduler" })
	if len(Trusted(v, Schedulers(), leases)) > 0 {
		names[corev1.DefaultSchedulerName] = true
	}
	for _, e := range v.Snap.Events {
		if e.Namespace == namespace && (e.Reason == "FailedScheduling" || e.Reason == "Scheduled") {
			names[cmp.Or(e.ReportingController, e.Source.Component)] = true
		}
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}
