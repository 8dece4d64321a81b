package choose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/mpijob"
)

// Auto is the dialect that the cluster decides on.
const Auto gang.Dialect = "auto"

// Request is the gang of one job as a user specifies it.
type Request struct {
	// Kind is the kind of the job.
	Kind schema.GroupKind
	// Dialect is how the gang is declared; Auto leaves it to the cluster.
	Dialect gang.Dialect
	// Scheduler is the schedulerName of members; empty is that of the scheduler that reads the dialect.
	Scheduler string
	// Queue is the queue in which the gang waits; empty for none.
	Queue string
	// Preferred are the node labels of which members should share a value; see [gang.Topology].
	Preferred []string
	// Declared is true for a job that declares its gang itself, so that the cluster has nothing to decide on.
	Declared bool
}

// Decision is the choice for a job that depends on the cluster.
type Decision struct {
	Dialect gang.Dialect
	// Version is the API version of the group object; the zero value is the one that the dialect prefers.
	Version schema.GroupVersion
	// Scheduler is the schedulerName of members; empty is the cluster's default.
	Scheduler string
	// Queue is the queue of the group object, LocalQueue the one in which the job waits for Kueue; empty for none.
	Queue, LocalQueue string
	// JobVersion is the API version of the job; empty for the usual one.
	JobVersion string
	// Operator is the scheduler for which the job's controller makes gangs by itself, empty if it makes none; nil if it is not seen.
	Operator *string
	// Note is what was decided and why; empty if the user decided.
	Note string
}

// UnreadQueueError reports that nothing in the cluster reads the queue of a request.
type UnreadQueueError struct {
	Queue   string
	Dialect gang.Dialect
}

// Error implements error.
func (e *UnreadQueueError) Error() string {
	return fmt.Sprintf("nothing here reads queue %s: dialect %s has no queues, and the cluster does not serve those of Kueue", e.Queue, e.Dialect)
}

// UnstatedPreferenceError reports that no dialect of a decision can state which domains members prefer.
type UnstatedPreferenceError struct{ Dialect gang.Dialect }

// Error implements error.
func (e *UnstatedPreferenceError) Error() string {
	return fmt.Sprintf("dialect %s cannot state which domains members prefer", e.Dialect)
}

// Stating are the decisions in which what the request prefers is stated; an [UnstatedPreferenceError] if that is none. gangctl's own scheduler reads
// the annotation in every dialect.
func (r Request) Stating(decisions []Decision) ([]Decision, error) {
	if len(r.Preferred) == 0 || len(decisions) == 0 {
		return decisions, nil
	}
	states := func(d Decision) bool {
		return d.writer().Prefers || d.Dialect != gang.None && d.Scheduler == schedulerplugins.DefaultScheduler
	}
	stating := slices.DeleteFunc(slices.Clone(decisions), func(d Decision) bool { return !states(d) })
	if len(stating) == 0 {
		return nil, &UnstatedPreferenceError{Dialect: decisions[0].Dialect}
	}
	return stating, nil
}

// Groups are the API groups whose kinds decisions depend on.
func Groups() []string {
	groups := []string{kueue.Group, mpijob.Reader().Group}
	for _, r := range dialect.Readers() {
		for _, kind := range r.Kinds {
			groups = append(groups, kind.Group)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// Recorded maps the kinds that decisions depend on, from the resources that a snapshot recorded as RESOURCE.GROUP/VERSION.
func Recorded(resources []string) meta.RESTMapper {
	var kinds []schema.GroupVersionKind
	var versions []schema.GroupVersion
	for _, served := range resources {
		name, version, _ := strings.Cut(served, "/")
		resource, group, _ := strings.Cut(name, ".")
		gv := schema.GroupVersion{Group: group, Version: version}
		for _, kind := range []string{groupKind, localQueueKind, mpijob.Reader().Kind} {
			if plural, _ := meta.UnsafeGuessKindToResource(gv.WithKind(kind)); plural.Resource == resource {
				kinds, versions = append(kinds, gv.WithKind(kind)), append(versions, gv)
			}
		}
	}
	mapper := meta.NewDefaultRESTMapper(versions)
	for _, kind := range kinds {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	return mapper
}

// The kinds that decisions depend on besides jobs. Group objects have one name in every dialect.
const (
	groupKind      = "PodGroup"
	localQueueKind = "LocalQueue"
)

// Serves reports whether the cluster serves group objects of an API group.
func (f Facts) Serves(group string) bool {
	return f.serves(schema.GroupKind{Group: group, Kind: groupKind})
}

// serves reports whether the cluster serves a kind in a version, or in any if none is given.
func (f Facts) serves(kind schema.GroupKind, versions ...string) bool {
	if f.Mapper == nil {
		return false
	}
	_, err := f.Mapper.RESTMapping(kind, versions...)
	return err == nil
}

// groupVersion is the version of a dialect's group objects that the cluster serves, the preferred one first; zero if it serves none.
func (f Facts) groupVersion(w gang.Writer) schema.GroupVersion {
	for _, gv := range w.Versions {
		if f.serves(schema.GroupKind{Group: gv.Group, Kind: groupKind}, gv.Version) {
			return gv
		}
	}
	return schema.GroupVersion{}
}

// Auto reports whether the dialect is the cluster's to decide.
func (r Request) Auto() bool { return r.Dialect == Auto && !r.Declared }

// NeedsCluster reports whether a decision depends on what the cluster serves.
func (r Request) NeedsCluster() bool {
	w := r.Default().writer()
	return r.Auto() || len(w.Versions) > 1 || r.Queue != "" && !w.Queues || r.isMPIJob()
}

func (r Request) isMPIJob() bool { return r.Kind == mpijob.Reader().GroupKind }

func (d Decision) writer() gang.Writer {
	w, _ := dialect.WriterOf(d.Dialect)
	return w
}

// Default is the decision without a cluster: Auto becomes the dialect that gangctl's own scheduler reads best.
func (r Request) Default() Decision {
	d := Decision{Dialect: r.Dialect, Queue: r.Queue}
	if d.Dialect == Auto {
		d.Dialect = gang.SchedulerPlugins
	}
	d.Scheduler = cmp.Or(r.Scheduler, d.writer().Scheduler)
	return d
}

// Offline is Default where no cluster shows what reads the queue: it is one of Kueue unless the dialect has queues.
func (r Request) Offline() Decision {
	d := r.Default()
	if !d.writer().Queues {
		d.Queue, d.LocalQueue = "", d.Queue
	}
	return d
}

// Decide returns the decisions for a request in a cluster, the best one first. The error is a [NothingError] where members would
// not start together in any dialect, or an [UnreadQueueError].
func (f Facts) Decide(r Request) ([]Decision, error) {
	if !r.Auto() {
		d, err := f.complete(r, r.Default())
		return []Decision{d}, err
	}
	choices, err := candidates(f, r.Scheduler)
	if err != nil {
		return nil, err
	}
	var decisions []Decision
	var refused error
	for _, c := range choices {
		d := r.Default()
		d.Dialect, d.Version, d.Scheduler = c.Dialect, c.Version, c.Scheduler
		d.Note = fmt.Sprintf("dialect %s: %s", c.Dialect, c.Why)
		if d, err = f.complete(r, d); err != nil {
			refused = cmp.Or(refused, err)
			continue
		}
		decisions = append(decisions, d)
	}
	if len(decisions) == 0 {
		return nil, refused
	}
	return decisions, nil
}

// complete fills in what follows from the kinds that are served: versions, and who reads the queue.
func (f Facts) complete(r Request, d Decision) (Decision, error) {
	w := d.writer()
	d.Operator = f.operator(r)
	if d.Version.Empty() {
		d.Version = f.groupVersion(w)
	}
	if r.isMPIJob() {
		for _, version := range mpijob.Versions() {
			if d.JobVersion == "" && f.serves(r.Kind, version) {
				d.JobVersion = version
			}
		}
	}
	if d.Queue == "" || w.Queues {
		return d, nil
	}
	if !f.serves(schema.GroupKind{Group: kueue.Group, Kind: localQueueKind}) {
		return d, &UnreadQueueError{Queue: d.Queue, Dialect: d.Dialect}
	}
	d.Queue, d.LocalQueue = "", d.Queue
	return d, nil
}

// operator is the scheduler for which the controller of the job's kind makes gangs; nil if the controller is not seen.
func (f Facts) operator(r Request) *string {
	reader, known := kind.ByKind(r.Kind)
	if !known || reader.GangLabel == "" || f.Cluster == nil || f.Blind != "" {
		return nil
	}
	name, seen := component.SchedulerOfOperator(f.Cluster, reader)
	if !seen {
		return nil
	}
	return &name
}

// Serving is the decision for a job that would not be submitted, where nothing depends on what the cluster serves: the scheduler
// is the one that serves the gang there, whatever its name.
func (f Facts) Serving(r Request) Decision {
	d := r.Default()
	if r.Scheduler != "" || d.Dialect == gang.None {
		return d
	}
	usual := d.Scheduler
	if d.Scheduler = component.GangScheduler(f.Cluster, d.Dialect, usual); d.Scheduler != usual {
		d.Note = fmt.Sprintf("the answer is for scheduler %s, which serves here; %s does not: submit with --scheduler %s", d.Scheduler, usual, d.Scheduler)
	}
	return d
}
