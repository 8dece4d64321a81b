package queueing

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// Entry is another gang that waits in the same queue.
type Entry struct {
	Job      *gang.Job
	Priority int64
	Created  time.Time
}

// Ahead are the rivals that come first: higher priority, then older.
func Ahead(all []Entry, mine Entry) []Entry {
	all = slices.DeleteFunc(all, func(r Entry) bool {
		return r.Priority < mine.Priority || r.Priority == mine.Priority && !r.Created.Before(mine.Created)
	})
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Created.Compare(b.Created), cmp.Compare(a.Job.Name(), b.Job.Name()))
	})
	return all
}

// Waiting are the other jobs that wait in a ClusterQueue, and where the one of a Workload stands. One that is switched off,
// or whose LocalQueue is stopped, waits for nothing.
func Waiting(v *view.View, g *gang.Gang, queue string, wl *unstructured.Unstructured) (all []Entry, mine Entry) {
	type waitingIn struct{ queue string }
	in := view.Once(v, waitingIn{queue}, func() (in []waiting) {
		for _, u := range v.Snap.Custom[kueue.Kind("Workload")] {
			if e, waits := entryOf(v, u); waits && behindLocal(v, u, false) == queue {
				in = append(in, waiting{e, u})
			}
		}
		return in
	})
	for _, e := range in {
		if e.of != wl {
			all = append(all, e.Entry)
		}
	}
	mine, _ = entryOf(v, wl)
	return all, mine
}

// waiting is the place of a Workload in its queue.
type waiting struct {
	Entry
	of *unstructured.Unstructured
}

// entryOf is where a Workload stands, and whether it is a job's that waits in a queue.
func entryOf(v *view.View, u *unstructured.Unstructured) (e Entry, waits bool) {
	w := gang.Fields{Object: u}
	e = Entry{Job: JobOf(v, u), Priority: int64(w.Int32("spec", "priority")), Created: u.GetCreationTimestamp().Time}
	_, finished := stage.Condition(u, "Finished")
	active, isSet, _ := unstructured.NestedBool(u.Object, "spec", "active")
	return e, e.Job != nil && finished != "True" && (!isSet || active) && w.Map("status", "admission") == nil
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
