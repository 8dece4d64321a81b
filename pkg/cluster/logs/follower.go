package logs

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/cluster/container"
)

// Follower reads the logs of members as they are written. It is notified of members and of what becomes of them; it opens no
// connection but to logs, and to get a pod whose log broke off.
type Follower struct {
	Client  kubernetes.Interface
	Sink    Sink
	Clock   clock.Clock
	Request Request
	// MaxStreams is how many connections are open at a time.
	MaxStreams int
	// TakeTurns is set where there are more members than connections: none is kept open then, and each log is read again and again.
	TakeTurns bool

	once         sync.Once
	slots        chan struct{}
	failed       chan error
	mu           sync.Mutex
	readers      map[types.UID]*reader
	done         map[types.UID]bool
	changed      chan struct{}
	lostReported time.Time // when a lost connection was reported last
}

func (f *Follower) init() {
	f.once.Do(func() {
		f.slots, f.failed = make(chan struct{}, max(1, f.MaxStreams)), make(chan error, 1)
		f.readers, f.done, f.changed = map[types.UID]*reader{}, map[types.UID]bool{}, make(chan struct{}, 1)
	})
}

// Update takes the state of a source. A pod that is new is read from now on; what was read of a pod that it replaces is read to its
// end. Readers end with ctx.
func (f *Follower) Update(ctx context.Context, source Source) {
	f.init()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done[source.Pod.UID] {
		return
	}
	if r := f.readers[source.Pod.UID]; r != nil {
		r.update(source.Pod)
		return
	}
	r := newReader(f, source)
	f.readers[source.Pod.UID] = r
	go func() {
		r.run(ctx)
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.readers, source.Pod.UID)
		f.done[source.Pod.UID] = true
		select {
		case f.changed <- struct{}{}:
		default:
		}
	}()
}

// Gone takes the pods that exist. The others are looked up, and where they are no more their readers end.
func (f *Follower) Gone(exist map[types.UID]bool) {
	f.init()
	f.mu.Lock()
	defer f.mu.Unlock()
	for uid, r := range f.readers {
		if !exist[uid] {
			r.suspect()
		}
	}
}

// Active is how many logs are being read, or waited for.
func (f *Follower) Active() int {
	f.init()
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.readers)
}

// Idle is how many of them are of containers that run, or have not started: only they go on when a job is over.
func (f *Follower) Idle() int {
	f.init()
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.readers {
		pod := r.state()
		if s := container.Status(pod, r.source.Container); !podutil.IsPodTerminal(pod) && (s == nil || container.Ended(s) == nil) {
			n++
		}
	}
	return n
}

// Ended signals whenever a reader has ended.
func (f *Follower) Ended() <-chan struct{} {
	f.init()
	return f.changed
}

// Failed has what ends the whole: a right that is missing does not mend itself.
func (f *Follower) Failed() <-chan error {
	f.init()
	return f.failed
}

func (f *Follower) fail(err error) {
	select {
	case f.failed <- err:
	default: // the first is reported
	}
}

// slot waits for a connection; it returns false if ctx ends first.
func (f *Follower) slot(ctx context.Context) bool {
	select {
	case f.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (f *Follower) release() { <-f.slots }
