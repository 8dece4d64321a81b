package engine

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// AssumedPods are the pods to which the engine has given nodes, and which are not bound yet, or not known to be. They are known of a cache that is watched.
type AssumedPods struct {
	mu   sync.Mutex
	pods map[types.UID]func() // what to do once the pod is one of them no longer, if anything
}

// NewAssumedPods returns those of a cache that is watched later.
func NewAssumedPods() *AssumedPods { return &AssumedPods{pods: map[types.UID]func(){}} }

// Then reports whether a pod is assumed. If it is, f is called once it is so no longer, on another goroutine; of several calls about a pod the last counts.
func (a *AssumedPods) Then(pod types.UID, f func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, assumed := a.pods[pod]; !assumed {
		return false
	}
	a.pods[pod] = f
	return true
}

// set records whether a pod is assumed.
func (a *AssumedPods) set(pod types.UID, assumed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f, was := a.pods[pod]
	switch {
	case assumed && !was:
		a.pods[pod] = nil
	case !assumed && was:
		delete(a.pods, pod)
		if f != nil {
			go f() // whoever changes the cache holds locks
		}
	}
}
