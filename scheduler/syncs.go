package scheduler

import (
	"slices"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// syncs are the informers that all have to have synced. What waits for them is
// created before some of them.
type syncs struct {
	mu  sync.Mutex
	all []cache.InformerSynced
}

func (s *syncs) add(more ...cache.InformerSynced) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, more...)
}

// done reports whether every pod and object is known.
func (s *syncs) done() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all) > 0 && !slices.ContainsFunc(s.all, func(synced cache.InformerSynced) bool { return !synced() })
}
