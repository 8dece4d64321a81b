package submit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/kind/mpijob"
	"github.com/gangctl/gangctl/pkg/submit/choose"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// auto is the dialect that the cluster decides on.
const auto gang.Dialect = "auto"

// plan makes the objects of one submission.
type plan struct {
	namespace string
	reader    gang.JobReader
	gang      gangFlags
	// declared is true for a job that says itself in which dialect it is a gang.
	declared bool
	// make renders the objects as decided.
	make func(decision) (*render.Objects, error)
}

// decision is what depends on the cluster.
type decision struct {
	dialect gang.Dialect
	// version is the API version of the group object; the zero value is the one that the dialect prefers.
	version schema.GroupVersion
	// scheduler is the schedulerName of members; empty is the cluster's default.
	scheduler string
	// queue is the queue of the group object, local the LocalQueue in which the job waits for Kueue; empty for none.
	queue, local string
	// jobVersion is the API version of the job; empty for the usual one.
	jobVersion string
}

// usual is what is decided without a cluster.
func (p plan) usual() decision {
	d := decision{dialect: p.gang.Dialect, scheduler: p.gang.Scheduler, queue: p.gang.Queue}
	if d.dialect == auto {
		d.dialect = gang.SchedulerPlugins
	}
	w, _ := dialect.WriterOf(d.dialect)
	d.scheduler = cmp.Or(d.scheduler, w.Scheduler)
	return d
}

// auto reports whether the dialect is the cluster's to decide.
func (p plan) auto() bool { return p.gang.Dialect == auto && !p.declared }

// asks reports whether a cluster has to be asked what it serves.
func (p plan) asks() bool {
	w, _ := dialect.WriterOf(p.usual().dialect)
	return p.auto() || len(w.Versions) > 1 || p.gang.Queue != "" && !w.Queues || p.reader.GroupKind == mpijob.Reader().GroupKind
}

// settle fills in what follows from what the cluster serves: versions, and who reads the queue.
func (p plan) settle(d decision, served []string) (decision, error) {
	w, _ := dialect.WriterOf(d.dialect)
	if i := slices.IndexFunc(w.Versions, func(gv schema.GroupVersion) bool { return serves(served, "podgroups", gv) }); d.version.Empty() && i >= 0 {
		d.version = w.Versions[i]
	}
	if p.reader.GroupKind == mpijob.Reader().GroupKind {
		for _, version := range mpijob.Versions() {
			if d.jobVersion == "" && serves(served, p.reader.Resource, schema.GroupVersion{Group: p.reader.Group, Version: version}) {
				d.jobVersion = version
			}
		}
	}
	if d.queue == "" || w.Queues {
		return d, nil
	}
	if !slices.ContainsFunc(served, func(s string) bool { return strings.HasPrefix(s, "localqueues."+kueue.Group+"/") }) {
		return d, failure.Usagef("--queue %s: nothing here reads it: dialect %s has no queues, and the cluster does not serve those of Kueue", d.queue, d.dialect).
			WithHint("leave out --queue, or add --dialect volcano where Volcano runs")
	}
	d.queue, d.local = "", d.queue
	return d, nil
}

func serves(served []string, resource string, gv schema.GroupVersion) bool {
	return slices.Contains(served, resource+"."+gv.Group+"/"+gv.Version)
}

// candidates are the decisions for a cluster of which so much is known, the best one first, each with what is to be said of it.
func (p plan) candidates(f choose.Facts) ([]decision, []string, error) {
	usual := p.usual()
	if !p.auto() {
		d, err := p.settle(usual, f.Served)
		return []decision{d}, []string{""}, err
	}
	choices, err := choose.Candidates(f, p.gang.Scheduler)
	var nothing *choose.NothingError
	if errors.As(err, &nothing) {
		return nil, nil, failure.Errorf("nothing here would start the members together: %w", err).
			WithHint("ask an administrator to install a scheduler of gangs, such as with `gangctl install scheduler`; "+
				"or add --dialect none to let members start one by one, or --dialect %s to declare the gang all the same", gang.SchedulerPlugins)
	}
	var decisions []decision
	var notes []string
	var refused error
	for _, c := range choices {
		d := usual
		d.dialect, d.version, d.scheduler = c.Dialect, c.Version, c.Scheduler
		if d, err = p.settle(d, f.Served); err != nil {
			if refused == nil {
				refused = err
			}
			continue
		}
		decisions, notes = append(decisions, d), append(notes, fmt.Sprintf("dialect %s: %s", c.Dialect, c.Why))
	}
	if len(decisions) == 0 {
		return nil, nil, refused
	}
	return decisions, notes, nil
}
