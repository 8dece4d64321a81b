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
	jobs := map[gang.Identity]*gang.Job{}
	for _, s := range v.Jobs() {
		jobs[gang.IdentityOf(&s.Meta)] = s
	}
	entry := func(u *unstructured.Unstructured) Entry {
		w := gang.Fields{Object: u}
		r := Entry{Priority: int64(w.Int32("spec", "priority")), Created: u.GetCreationTimestamp().Time}
		for _, ref := range u.GetOwnerReferences() {
			if s := jobs[gang.Identity{Namespace: u.GetNamespace(), UID: ref.UID}]; s != nil {
				r.Job = s
			}
		}
		return r
	}
	for _, u := range v.Snap.Custom[kueue.Kind("Workload")] {
		w := gang.Fields{Object: u}
		_, finished := stage.Condition(u, "Finished")
		active, isSet, _ := unstructured.NestedBool(u.Object, "spec", "active")
		r := entry(u)
		if u == wl || r.Job == nil || finished == "True" || isSet && !active || w.Map("status", "admission") != nil || ClusterQueue(v, g, u) != queue {
			continue
		}
		all = append(all, r)
	}
	return all, entry(wl)
}

// PriorityOf is the value of a PriorityClass; 0 if there is none of the name.
func PriorityOf(v *view.View, name string) int32 {
	for _, class := range v.Snap.PriorityClasses {
		if class.Name == name {
			return class.Value
		}
	}
	return 0
}
