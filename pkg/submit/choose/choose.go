// Package choose decides how a gang is declared so that a cluster enforces it: which group objects the cluster serves,
// and which schedulers that read them run, as far as can be seen. It is pure.
package choose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

// Facts are the properties of a cluster on which the choice depends.
type Facts struct {
	// Mapper maps the kinds of [Groups] that the cluster serves; nil if that is not known.
	Mapper meta.RESTMapper
	// Cluster holds the Deployments and Leases of all namespaces.
	Cluster *view.View
	// Blind is why schedulers cannot be seen; empty if they can.
	Blind string
}

// Choice is a dialect that is, or may be, enforced.
type Choice struct {
	Dialect gang.Dialect
	// Version is the API version of the group object that is served; the zero value in a dialect without objects.
	Version schema.GroupVersion
	// Scheduler is the schedulerName for members; empty is the cluster's default.
	Scheduler string
	// Why completes "dialect X: …".
	Why string
}

// NothingError reports that no dialect would be enforced.
type NothingError struct {
	// Reasons are why, dialect by dialect.
	Reasons []string
}

// Error implements error.
func (e *NothingError) Error() string { return strings.Join(e.Reasons, "; ") }

// state is the state of a scheduler, as far as it is known.
type state int

const (
	absent  state = iota // it does not run
	down                 // it is there, and does not work
	unknown              // nothing can be seen of it
	alive
)

// candidates are the dialects in which members would start together, the best one first: those whose scheduler is seen to run,
// then those of which that cannot be seen. scheduler is the schedulerName that members are to have, if the user chose one; then
// only dialects that it may read are considered. Without any it is a NothingError.
//
// PodGroups of scheduler-plugins come first: gangctl's own scheduler, which reads every dialect, reads them best.
func candidates(f Facts, scheduler string) ([]Choice, error) {
	var seen, unseen []Choice
	nothing := &NothingError{}
	for _, w := range inOrder(scheduler) {
		c, s := f.judge(w, scheduler)
		if w.Dialect == gang.Labels && len(seen)+len(unseen) > 0 {
			continue // a scheduler that reads labels reads objects too, which hold more
		}
		switch s {
		case alive:
			seen = append(seen, c)
		case unknown:
			unseen = append(unseen, c)
		default:
			nothing.Reasons = append(nothing.Reasons, fmt.Sprintf("dialect %s: %s", w.Dialect, c.Why))
		}
	}
	if all := append(seen, unseen...); len(all) > 0 {
		return all, nil
	}
	return nil, nothing
}

// Order are the dialects that declare gangs, the one that is chosen before others first.
func Order() []gang.Writer {
	var writers []gang.Writer
	for _, d := range []gang.Dialect{gang.SchedulerPlugins, gang.Native, gang.Volcano, gang.KubeBatch, gang.Labels} {
		w, _ := dialect.WriterOf(d)
		writers = append(writers, w)
	}
	return writers
}

// inOrder is the order for members of a scheduler: dialects that it is known to read come first.
func inOrder(scheduler string) []gang.Writer {
	writers := Order()
	if scheduler != "" {
		slices.SortStableFunc(writers, func(a, b gang.Writer) int { return cmp.Compare(affinity(b, scheduler), affinity(a, scheduler)) })
	}
	return writers
}

// affinity is 1 for a scheduler that is known to read what is written, -1 for one that is known to read something else only.
func affinity(w gang.Writer, scheduler string) int {
	if scheduler == schedulerplugins.DefaultScheduler {
		return 1
	}
	r, _ := dialect.ReaderOf(w.Dialect)
	return dialect.Affinity(r, scheduler)
}

// judge reports how well a dialect would be enforced; of one that would not, Why is the reason.
func (f Facts) judge(w gang.Writer, scheduler string) (Choice, state) {
	c := Choice{Dialect: w.Dialect, Scheduler: cmp.Or(scheduler, w.Scheduler)}
	if len(w.Versions) > 0 {
		if c.Version = f.groupVersion(w); c.Version.Empty() {
			c.Why = fmt.Sprintf("the cluster does not serve podgroups.%s", w.Versions[0].Group)
			return c, absent
		}
	}
	if scheduler != "" && affinity(w, scheduler) < 0 {
		c.Why = fmt.Sprintf("scheduler %s does not read it", scheduler)
		return c, absent
	}
	if scheduler == corev1.DefaultSchedulerName && affinity(w, scheduler) == 0 {
		c.Why = fmt.Sprintf("kube-scheduler, which answers to %s, does not read it by itself", scheduler)
		return c, absent
	}
	var s state
	c.Scheduler, s = f.scheduler(w, scheduler)
	if s == alive && scheduler != "" && affinity(w, scheduler) == 0 {
		s = unknown // it runs, but what it reads is not known
	}
	name := cmp.Or(c.Scheduler, corev1.DefaultSchedulerName)
	what := "its PodGroups are served here"
	if w.Object == nil {
		what = "it needs no object"
	}
	switch s {
	case alive:
		c.Why = fmt.Sprintf("scheduler %s runs here and reads it", name)
	case unknown:
		c.Why = fmt.Sprintf("%s; whether scheduler %s runs and reads it cannot be seen%s", what, name, f.because())
	case down:
		c.Why = fmt.Sprintf("scheduler %s, which reads it, is down", name)
	default:
		c.Why = "no scheduler that reads it runs"
	}
	if w.Dialect == gang.Labels && s != alive {
		// Any scheduler may read labels, and nothing in a cluster shows which.
		if s == unknown {
			c.Why = fmt.Sprintf("whether scheduler %s runs and reads it cannot be seen%s", name, f.because())
		}
		return c, absent
	}
	return c, s
}

// Declarable is the best dialect in which a gang can be declared here, whether or not a scheduler reads it.
func (f Facts) Declarable() gang.Dialect {
	for _, w := range Order() {
		if len(w.Versions) == 0 || !f.groupVersion(w).Empty() {
			return w.Dialect
		}
	}
	return gang.Labels
}

func (f Facts) because() string {
	if f.Blind == "" {
		return ""
	}
	return " (" + f.Blind + ")"
}

// scheduler is the schedulerName for members of gangs of a dialect, and what is known of its scheduler.
func (f Facts) scheduler(w gang.Writer, requested string) (string, state) {
	if requested != "" {
		if s := f.find(requested); s != absent {
			return requested, s
		}
		return requested, unknown // a name that a scheduler answers to need not show anywhere
	}
	if w.Dialect == gang.Native {
		if s := f.find(corev1.DefaultSchedulerName); s != absent {
			return w.Scheduler, s
		}
		return w.Scheduler, unknown // a managed control plane does not show its own
	}
	names := []string{w.Scheduler}
	if f.Cluster != nil && w.Dialect == gang.SchedulerPlugins {
		// First: a lease may be called like the program, whatever name that serves.
		names = append([]string{component.GangScheduler(f.Cluster, w.Dialect, w.Scheduler)}, names...)
	}
	r, _ := dialect.ReaderOf(w.Dialect)
	best, state := w.Scheduler, absent
	for _, name := range append(names, r.Schedulers...) {
		if s := f.find(name); s > state {
			best, state = name, s
		}
	}
	return best, state
}

// find returns what is known of the scheduler of a name.
func (f Facts) find(name string) state {
	if f.Blind != "" || f.Cluster == nil {
		return unknown
	}
	s := component.FindScheduler(f.Cluster, name, "")
	switch {
	case len(s.Deployments)+len(s.Leases) > 0 && s.Down(f.Cluster.Now):
		return down
	case len(s.Deployments)+len(s.Leases) > 0:
		return alive
	case len(f.Cluster.Snap.Deployments) == 0:
		return unknown // every cluster that shows what runs in it runs something
	}
	return absent
}
