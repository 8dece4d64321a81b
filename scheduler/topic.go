package scheduler

import (
	"sync"

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
