package queueing

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// Entry is another gang that waits in the same queue.
type Entry struct {
	// Job is nil for a Workload of a kind that is not known here.
	Job      *gang.Job
	Workload *unstructured.Unstructured
	Priority int64
	// Since is from when its place in the queue counts: since it was made, unless it was put back later. Of two at the same time the one with the lower ID comes first; without
	// one neither does.
	Since time.Time
	ID    string
}

// name is for the order of equals.
func (e Entry) name() string {
	if e.Job == nil {
		return e.Workload.GetNamespace() + "/" + e.Workload.GetName()
	}
	return e.Job.Name()
}

// before reports whether an entry comes before another one: higher priority, then older.
func (e Entry) before(other Entry) bool { return e.compare(other) < 0 }

func (e Entry) compare(other Entry) int {
	return cmp.Or(cmp.Compare(other.Priority, e.Priority), e.Since.Compare(other.Since), strings.Compare(e.ID, other.ID))
}

// Head is the job that comes first of those that wait in a ClusterQueue; nil if none does.
func Head(v *view.View, queue string) *Entry {
	all, _ := Waiting(v, queue, nil)
	if len(all) == 0 {
		return nil
	}
	head := slices.MinFunc(all, func(a, b Entry) int { return cmp.Or(a.compare(b), cmp.Compare(a.name(), b.name())) })
	return &head
}

// Ahead are the rivals that come first.
func Ahead(all []Entry, mine Entry) []Entry {
	all = slices.DeleteFunc(all, func(r Entry) bool { return !r.before(mine) })
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Since.Compare(b.Since), strings.Compare(a.ID, b.ID), cmp.Compare(a.name(), b.name()))
	})
	return all
}

// Waiting are the other jobs that wait in a ClusterQueue, and where the one of a Workload stands. One that is set aside, whose LocalQueue is stopped or whose namespace the queue does
// not take waits for nothing.
func Waiting(v *view.View, queue string, wl *unstructured.Unstructured) (all []Entry, mine Entry) {
	type byQueue struct{}
	for _, e := range view.Once(v, byQueue{}, func() map[string][]Entry { return waiting(v) })[queue] {
		if e.Workload != wl {
			all = append(all, e)
		}
	}
	if wl == nil {
		return all, Entry{}
	}
	return all, entryOf(v, wl)
}

func entryOf(v *view.View, u *unstructured.Unstructured) Entry {
	return Entry{Job: JobOf(v, u), Workload: u, Priority: kueue.PriorityOf(u), Since: kueue.QueuedSince(u), ID: string(u.GetUID())}
}

// waiting are all that wait, by ClusterQueue.
func waiting(v *view.View) map[string][]Entry {
	all := map[string][]Entry{}
	for _, u := range v.Snap.Custom[kueue.Kind("Workload")] {
		if !kueue.Queued(u, v.Now) {
			continue
		}
		queue, stopped := behindLocal(v, u)
		if queue == "" || stopped {
			continue
		}
		if job := JobOf(v, u); job == nil && Ownerless(v, u) || job != nil && job.End != nil {
			continue
		}
		if cluster := Object(v, "ClusterQueue", "", queue); cluster == nil || Takes(v, cluster, u.GetNamespace()) {
			all[queue] = append(all[queue], entryOf(v, u))
		}
	}
	return all
}

// PriorityOf is the value of a PriorityClass; 0 if there is none of the name.
func PriorityOf(v *view.View, name string) int32 {
	type priorities struct{}
	return view.Once(v, priorities{}, func() map[string]int32 {
		values := make(map[string]int32, len(v.Snap.PriorityClasses))
		for _, class := range v.Snap.PriorityClasses {
			values[class.Name] = class.Value
		}
		return values
	})[name]
}

// PriorityInKueue is the priority by which Kueue orders a gang: that of its Workload, or the one that this will have.
func PriorityInKueue(v *view.View, g *gang.Gang, wl *unstructured.Unstructured) int64 {
	if wl != nil {
		return kueue.PriorityOf(wl)
	}
	if class := Object(v, "WorkloadPriorityClass", "", g.Meta.Labels[kueue.PriorityLabel]); class != nil {
		f := gang.Fields{Object: class}
		return int64(f.Int32("value"))
	}
	for _, role := range g.Roles {
		if name := role.Template.Spec.PriorityClassName; name != "" {
			return int64(PriorityOf(v, name))
		}
	}
	return 0
}
