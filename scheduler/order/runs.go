package order

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	since   time.Time
	left    bool // none runs any more
}

// NewRuns returns one that follows no gang yet.
func NewRuns(history *History, clock clock.PassiveClock) *Runs {
	return &Runs{history: history, clock: clock, begun: lru.New(remembered)}
}

// Started notes that a member of a gang has a node, and reports whether it is the first. Its members are read then, and again if there are
// more: the last may come while the first is being placed.
func (r *Runs) Started(group types.NamespacedName, member *corev1.Pod, members func() []*corev1.Pod) bool {
	began := run{since: r.clock.Now()}
	if controller := metav1.GetControllerOfNoCopy(member); controller != nil {
		began.owner = types.UID(gang.BoundedName(string(controller.UID)))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	value, known := r.begun.Get(group)
	// Pods that no job owns may come again under the name of a gang that is gone.
	if known = known && value.(run).owner == began.owner && !(value.(run).left && began.owner == ""); known {
		began = value.(run)
	}
	if began.placed++; began.placed > began.members {
		pods := members()
		if len(pods) == 0 {
			return false
		}
		began.class, began.members = ClassOf(pods), len(pods)
	}
	r.begun.Add(group, began)
	return !known
}

// Ends is how many members of a gang may run yet, and how many have succeeded and failed.
type Ends func() (left, succeeded, failed int)

// Changed is called when a gang may have ended. Only one that succeeded is an example: one that fails, or is deleted, is no measure of how
// long the next runs. Ends is called for gangs that run only.
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
	if succeeded+failed < began.members { // they were deleted, or the watch of those that end is behind
		began.left = true
		r.begun.Add(group, began)
		return
	}
	r.begun.Remove(group)
	if failed == 0 {
		r.history.Record(began.class, r.clock.Since(began.since))
	}
}
