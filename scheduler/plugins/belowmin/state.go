package belowmin

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
)

// state is what is remembered of a gang.
type state struct {
	whole []types.UID // the members that had places when it was last seen whole
	// parts are the members that had places when it was found that it was never
	// whole. What told so may be gone later: a member that could not be bound is
	// replaced by a younger one, and all become old.
	parts []types.UID
	below time.Time // since when it is below its minimum, or was looked at in vain; zero if it is not
	first time.Time // since when it is below its minimum
	// spent is how long members had been on their way by below.
	spent  time.Duration
	told   string      // the newest event on it
	taking bool        // its places are being taken
	begun  bool        // some of them have been
	rolls  bool        // because it was never whole
	taken  int         // how often they were, since it was whole
	owners []types.UID // of its pods then
	gone   time.Time   // since when it has no pods; zero if it has
}

// neverWhole tells whether a gang has not been whole since its first member was
// bound; see [tally.neverWhole]. Once that was seen while nobody was on the way it
// stays so until the gang is whole, has no places, or another member got one: then
// it may have been whole for a moment.
func (s *state) neverWhole(t tally, pods []*corev1.Pod, onTheWay bool, recently time.Duration) bool {
	among := func(those []types.UID) func(*corev1.Pod) bool {
		return func(pod *corev1.Pod) bool { return slices.Contains(those, pod.UID) }
	}
	// Another gang of the same name may have come without a moment in between.
	if slices.ContainsFunc(pods, among(s.whole)) {
		return false
	}
	if t.neverWhole(s.first, recently) {
		if !onTheWay {
			s.parts = uids(t.placed)
		}
		return true
	}
	strangers := slices.DeleteFunc(slices.Clone(t.placed), among(s.parts))
	return len(strangers) == 0
}

// adopt notes of which job the pods of a gang are. A job of the same name starts
// without what was counted of an earlier one.
func (s *state) adopt(pods []*corev1.Pod) {
	if len(pods) == 0 {
		return
	}
	s.gone = time.Time{}
	if now := owners(pods); s.taken > 0 && !s.taking && len(now) > 0 && !slices.ContainsFunc(now, func(uid types.UID) bool { return slices.Contains(s.owners, uid) }) {
		s.taken = 0
	}
}

// remember keeps how often the places of a gang were taken that has no pods now:
// those of a job that is suspended are deleted before it is resumed.
func (c *Controller) remember(key gang.Key, s *state) {
	now := c.Clock.Now()
	if s.gone.IsZero() {
		s.gone = now
	}
	left := longest - now.Sub(s.gone)
	if s.taken == 0 || left <= 0 {
		delete(c.gangs, key)
		return
	}
	c.queue.AddAfter(key, left)
}

func uids(pods []*corev1.Pod) []types.UID {
	all := make([]types.UID, 0, len(pods))
	for _, pod := range pods {
		all = append(all, pod.UID)
	}
	return all
}

// owners are the controllers of those pods that have not ended, each once; empty
// for none.
func owners(pods []*corev1.Pod) []types.UID {
	var all []types.UID
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		var uid types.UID
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
			uid = owner.UID
		}
		if !slices.Contains(all, uid) {
			all = append(all, uid)
		}
	}
	return all
}
