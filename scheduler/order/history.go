package order

import (
	"sync"
	"time"

	"k8s.io/utils/lru"
)

// remembered is for how many owners and shapes runtimes are remembered; those that were not used for longest are forgotten.
const remembered = 4096

// History has the runtimes of gangs that have ended. It is bounded, and a scheduler that starts has none.
type History struct {
	mu   sync.Mutex
	runs *lru.Cache // of time.Duration by Class
}

// NewHistory returns an empty history.
func NewHistory() *History { return &History{runs: lru.New(remembered)} }

// Record adds a gang that has ended. What came last counts as much as all before it (an exponential average).
func (h *History) Record(class Class, runtime time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if before, ok := h.expect(class); ok {
		runtime = before/2 + runtime/2
	}
	h.runs.Add(class, runtime)
}

// empty reports whether nothing was recorded yet.
func (h *History) empty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runs.Len() == 0
}

// Expect is how long a gang of a class runs; ok is false where none has ended.
func (h *History) Expect(class Class) (runtime time.Duration, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.expect(class)
}

func (h *History) expect(class Class) (time.Duration, bool) {
	value, ok := h.runs.Get(class)
	if !ok {
		return 0, false
	}
	return value.(time.Duration), true
}
