package logs

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// overlap is how far before the newest line a log is read again. Lines of the two streams of a process can be out of order
	// by a moment, and the status of a pod can be some seconds behind what happened to it.
	overlap = 10 * time.Second
	// remembered is for how long before the newest line lines are remembered. A request names whole seconds.
	remembered = overlap + 2*time.Second
)

// lineKey stands for a line.
type lineKey struct {
	at  int64
	sum uint64
}

// memory knows the latest lines of one container, so that each is given on once. It is safe for concurrent use.
type memory struct {
	mu     sync.Mutex
	seed   maphash.Seed
	newest time.Time
	// seen counts the lines that were given on; keys are its keys in the order in which they came.
	seen map[lineKey]int
	keys []lineKey
	// passes are the readings that go on: one of the run that is, and one of the run before.
	passes []*pass
}

func newMemory() *memory { return &memory{seed: maphash.MakeSeed(), seen: map[lineKey]int{}} }

// since is from when on to read again; nil if nothing was read yet.
func (m *memory) since() *metav1.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.newest.IsZero() {
		return nil
	}
	t := metav1.NewTime(m.newest.Add(-overlap).Truncate(time.Second))
	return &t
}

// pass is one reading of a log, which gives lines in their order.
type pass struct {
	memory *memory
	counts map[lineKey]int
	keys   []lineKey
	// at is how far it has come: the time of its latest line, before there is one that from which on it reads. Zero is not known.
	at time.Time
}

// begin begins a reading from that moment on, nil for the whole log; the caller ends it.
func (m *memory) begin(since *metav1.Time) *pass {
	p := &pass{memory: m, counts: map[lineKey]int{}}
	if since != nil {
		p.at = since.Time
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passes = append(m.passes, p)
	return p
}

func (p *pass) end() {
	m := p.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passes = slices.DeleteFunc(m.passes, func(other *pass) bool { return other == p })
}

// floor is the time of the oldest lines that are remembered: a reading that is behind must know what was given on as well.
func (m *memory) floor() int64 {
	oldest := m.newest
	for _, p := range m.passes {
		if !p.at.IsZero() && p.at.Before(oldest) {
			oldest = p.at
		}
	}
	return oldest.Add(-remembered).UnixNano()
}

// isNew reports whether a line was not given on before, and remembers it. A line that is there twice, at the same time, is new
// twice.
func (p *pass) isNew(at time.Time, text string) bool {
	m := p.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	k := lineKey{at.UnixNano(), maphash.String(m.seed, text)}
	if at.After(m.newest) {
		m.newest = at
	}
	if at.After(p.at) {
		p.at = at
	}
	floor := m.floor()
	m.keys = forget(m.seen, m.keys, floor)
	p.keys = forget(p.counts, p.keys, floor)
	if p.counts[k] == 0 {
		p.keys = append(p.keys, k)
	}
	p.counts[k]++
	if p.counts[k] <= m.seen[k] {
		return false
	}
	if m.seen[k] == 0 {
		m.keys = append(m.keys, k)
	}
	m.seen[k] = p.counts[k]
	return true
}

// forget drops the oldest keys from before a moment.
func forget(counts map[lineKey]int, keys []lineKey, floor int64) []lineKey {
	n := 0
	for n < len(keys) && keys[n].at < floor {
		delete(counts, keys[n])
		n++
	}
	return keys[n:]
}
