package scheduler

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// doubtful is how long a pod is kept from the engine that a budget would make a
// member of a gang. Budgets and pods are two watches, and whoever creates a budget
// before its pods, as operators do, may rely on it.
const doubtful = 500 * time.Millisecond

// doubts are the pods that are kept from the engine, by uid.
type doubts map[types.UID]*doubt

type doubt struct {
	pod   *corev1.Pod
	timer *time.Timer
}

// doubt keeps a pod from the engine for a while. The caller holds the lock.
func (r *regrouped) doubt(pod *corev1.Pod) {
	d := &doubt{pod: pod}
	r.doubts[pod.UID] = d
	d.timer = time.AfterFunc(r.patience, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.doubts[pod.UID] == d {
			r.clear(pod.UID)
		}
	})
}

// clear shows the engine a pod that was kept from it, and tells whether it was.
// The caller holds the lock.
func (r *regrouped) clear(uid types.UID) bool {
	d := r.doubts[uid]
	if !r.drop(uid) {
		return false
	}
	view := r.gangs.View(d.pod)
	r.sights[uid] = sight{d.pod, view}
	for _, handler := range r.handlers {
		handler.OnAdd(view, false)
	}
	return true
}

// drop forgets that a pod was kept from the engine, and tells whether it was. The
// caller holds the lock.
func (r *regrouped) drop(uid types.UID) bool {
	d := r.doubts[uid]
	if d == nil {
		return false
	}
	d.timer.Stop()
	delete(r.doubts, uid)
	return true
}
