package order

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Runs follows gangs from their start to their end, for the history. As many are followed as classes are remembered.
type Runs struct {
	history *History
	clock   clock.PassiveClock

	mu    sync.Mutex
	begun *lru.Cache // of run by the gang's name
}

// run is a gang that runs.
type run struct {
	class   Class
	members int
	placed  int       // how many have been given a node
	owner   types.UID // of the job; a later one may have the same name
	// owners are those of its members, until all have been given nodes: each is looked for as often as there are members.
	owners sets.Set[types.UID]
	since  time.Time
	left   bool // none runs any more
}

// NewRuns returns one that follows no gang yet.
func NewRuns(history *History, clock clock.PassiveClock) *Runs {
	return &Runs{history: history, clock: clock, begun: lru.New(remembered)}
}

// Started notes that a member of a gang has a node, and reports whether it is the first. Its members are read then, and again if there are
// more: the last may come while the first is being placed.
func (r *Runs) Started(group types.NamespacedName, member *corev1.Pod, members func() []*corev1.Pod) bool {
	began := run{since: r.clock.Now(), owner: ownerOf(member)}
	r.mu.Lock()
	defer r.mu.Unlock()
	value, known := r.begun.Get(group)
	if known = known && !value.(run).left && value.(run).has(began.owner, members); known {
		began = value.(run)
	}
	if began.placed++; began.placed > began.members {
		pods := members()
		if len(pods) == 0 {
			return false
		}
		began.class, began.members, began.owners = ClassOf(pods), len(pods), sets.New[types.UID]()
		for _, pod := range pods {
			began.owners.Insert(ownerOf(pod))
		}
	}
	if began.placed >= began.members {
		began.owners = nil
	}
	r.begun.Add(group, began)
	return !known
}

// has reports whether a run is that of an owner: its own, or one of the several that the members of a gang may have, such as the Jobs of a JobSet. A
// later job may have the same name, and none of the pods of the one before.
func (r run) has(owner types.UID, members func() []*corev1.Pod) bool {
	return r.owner == owner || r.owners.Has(owner) || slices.ContainsFunc(members(), func(pod *corev1.Pod) bool { return ownerOf(pod) == r.owner })
}

// ownerOf is the controller of a pod; empty for none.
func ownerOf(pod *corev1.Pod) types.UID {
	if controller := metav1.GetControllerOfNoCopy(pod); controller != nil {
		return types.UID(gang.BoundedName(string(controller.UID)))
	}
	return ""
}

// Ends is how many members of a gang may run yet, and how many have succeeded and failed.
type Ends func() (left, succeeded, failed int)

// Changed is called when a gang may have ended. One that succeeded is an example; of one that failed, or was deleted, it is known that it would have run
// longer: it counts where it ran longer than expected. Ends is called for gangs that run only.
func (r *Runs) Changed(group types.NamespacedName, ends Ends) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, known := r.begun.Get(group)
	if !known {
		return
	}
	began := value.(run)
	left, succeeded, failed := ends()
	if left > 0 {
		return
	}
	ran := r.clock.Since(began.since)
	all := succeeded+failed >= began.members
	if expected, known := r.history.Expect(began.class); failed == 0 && all || known && ran > expected && !began.left {
		r.history.Record(began.class, ran)
	}
	if all {
		r.begun.Remove(group)
		return
	}
	began.left = true // they were deleted, or the watch of those that end is behind
	r.begun.Add(group, began)
}
