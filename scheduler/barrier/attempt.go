package barrier

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

// attempt is the members of one gang that are decided on in one cycle, and how
// far each of them has come.
type attempt struct {
	gang string // as its users call it
	need int    // how many of the members must be bound
	// cancel calls off what is being done for a member before it is bound.
	cancel func(types.UID, error)

	mu      sync.Mutex
	work    bool // somebody has something to do before
	members map[types.UID]stage
	changed chan struct{} // closed and replaced when something happened
	err     error         // why nobody may go; nil as long as all may
}

type stage int

const (
	coming stage = iota // has a node, and may have something to do
	ready               // has done it
	failed
)

// Clone implements fwk.StateData: all members share one attempt.
func (a *attempt) Clone() fwk.StateData { return a }

func newAttempt(gang string, need int, cancel func(types.UID, error)) *attempt {
	return &attempt{gang: gang, need: need, cancel: cancel, members: map[types.UID]stage{}, changed: make(chan struct{})}
}

// join adds a member that has a node.
func (a *attempt) join(uid types.UID, work bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.members[uid] = coming
	a.work = a.work || work
}

// waits tells whether the members have to wait for each other: somebody has
// something to do, and one alone would not be enough.
func (a *attempt) waits() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.work && a.need > 1
}

// count is how many members are at a stage or further. The lock is held.
func (a *attempt) count(at stage) (n int) {
	for _, s := range a.members {
		if s >= at && s != failed {
			n++
		}
	}
	return n
}

// fail notes that a member will not be bound. If too few are left, nobody is.
func (a *attempt) fail(uid types.UID, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s, member := a.members[uid]; !member || s == failed {
		return
	}
	a.members[uid] = failed
	if a.count(coming) < a.need {
		a.end(fmt.Errorf("member %s of gang %s could not be made ready, and the gang needs it: nobody of it is bound", name, a.gang))
	}
}

// end has everybody fail that was not let go. Those that are still at it are
// called off: while they are, the engine takes them for placed.
func (a *attempt) end(err error) {
	if a.err != nil {
		return
	}
	a.err = err
	for uid, s := range a.members {
		if s == coming {
			a.cancel(uid, err)
		}
	}
	a.tell()
}

func (a *attempt) tell() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// ended is why nobody may go.
func (a *attempt) ended() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// errTimeout is why an attempt took too long.
var errTimeout = errors.New("timeout")

// wait notes that a member is ready, and returns when as many are as the gang
// needs, or an error when they cannot be any more or it takes too long.
func (a *attempt) wait(ctx context.Context, uid types.UID, timeout time.Duration) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.members[uid] = ready
	a.tell()
	for {
		n := a.count(ready)
		if a.err != nil {
			return a.err
		}
		if n >= a.need {
			return nil
		}
		changed := a.changed
		a.mu.Unlock()
		select {
		case <-changed:
			a.mu.Lock()
		case <-timer.C:
			a.mu.Lock()
			a.end(fmt.Errorf("%w: after %s only %d of %d members that gang %s needs are ready: nobody of it is bound", errTimeout, timeout, n, a.need, a.gang))
		case <-ctx.Done():
			a.mu.Lock()
			return context.Cause(ctx)
		}
	}
}
