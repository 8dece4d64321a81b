package gangcache

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Standing is how many members of a gang must have a place now, those that have
// completed not counted, and the priority that all of them have. It does not
// depend on how many members exist; ok is false for a gang that is not declared.
func (r *Roster) Standing(key gang.Key) (need, priority int32, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	e := r.gangs[key]
	if e == nil {
		return 0, 0, false
	}
	if need, _ = e.need(r, key); need == 0 {
		return 0, 0, false
	}
	if object := e.object(key.Dialect); object != nil && object.Basic {
		return 0, 0, false
	}
	return max(1, need-e.completed()), e.terms.Priority, true
}

// Priority is what all members of a gang have, whether it is declared or not.
func (r *Roster) Priority(key gang.Key) int32 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if e := r.gangs[key]; e != nil {
		return e.terms.Priority
	}
	return 0
}

// Completed is how many members of a gang need no place any more; those of an
// earlier one of the same name do not count.
func (r *Roster) Completed(key gang.Key) int32 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if e := r.gangs[key]; e != nil {
		return e.completed()
	}
	return 0
}

// Member returns the gang of a pod of ours that is alive or leaves.
func (r *Roster) Member(uid types.UID) (key gang.Key, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, c := range []cohort{live, gone} {
		if rec := r.pods[c][uid]; rec != nil {
			return rec.key, rec.in
		}
	}
	return gang.Key{}, false
}
