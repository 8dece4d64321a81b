package scheduler

import (
	"slices"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/gangctl/gangctl/pkg/gang"
)

// topic passes gangs on. What notices changes and what reacts to them need
// each other, so it is created before both.
type topic struct {
	mu          sync.Mutex
	subscribers []func(gang.Key)
}

// subscribe has functions called with every gang from now on.
func (t *topic) subscribe(subscribers ...func(gang.Key)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subscribers = append(t.subscribers, subscribers...)
}

// publish passes a gang on.
func (t *topic) publish(key gang.Key) {
	t.mu.Lock()
	subscribers := t.subscribers
	t.mu.Unlock()
	for _, subscriber := range subscribers {
		subscriber(key)
	}
}

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
