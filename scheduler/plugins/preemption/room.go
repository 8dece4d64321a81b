package preemption

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// room is what is being cleared for a gang or a pod. Until that is placed, nobody
// else of the same or a lower priority may use it.
type room struct {
	key      types.NamespacedName
	priority int32
	pods     []*corev1.Pod             // for whom it is
	seats    map[string][]*corev1.Pod  // by node; not changed
	victims  map[types.UID]*corev1.Pod // who still are there
	jobs     map[types.UID]bool        // that are suspended for it
	units    []Unit                    // to be evicted
	text     string                    // what is said of it
	timeout  time.Duration             // for victims to go after their grace
	since    time.Time                 // it was decided on
	cleared  time.Time                 // all victims were gone; zero before
}

// claims are one for each of those who come.
func (r *room) claims() (all []claims.Claim) {
	leaving := map[types.UID]bool{}
	for uid := range r.victims {
		leaving[uid] = true
	}
	for _, node := range slices.Sorted(maps.Keys(r.seats)) {
		for _, pod := range r.seats[node] {
			all = append(all, claims.Claim{
				For: r.key, Node: node, Pod: pod, Why: "being cleared for " + claims.Describe(r.key), Priority: r.priority,
				Leaving: leaving, Progress: r.text, Suspended: r.jobs,
			})
		}
	}
	return all
}
