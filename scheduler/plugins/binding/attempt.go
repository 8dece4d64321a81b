package binding

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	// stands tells whether a node is still there.
	stands func(node string) bool
	// exists tells whether a pod is still there, and is to stay.
	exists func(uid types.UID, name string) bool

	mu      sync.Mutex
	work    bool // somebody has something to do before
	members map[types.UID]*member
	met     bool          // as many have set out as the gang needs
	open    bool          // as many were ready: who is ready may go
	changed chan struct{} // closed and replaced when something happened
	err     error         // why nobody may go; nil as long as all may
}

// member is one of them: the node that was decided on, and how far it has come.
type member struct {
	name, node string
	stage      stage
	why        string // it failed
}

type stage int

const (
	chosen stage = iota // has a node, and has not set out
	coming              // has set out, and may have something to do
	ready               // has done it
	failed
)

// Clone implements fwk.StateData: all members share one attempt.
func (a *attempt) Clone() fwk.StateData { return a }

func newAttempt(gang string, need int, cancel func(types.UID, error), stands func(string) bool, exists func(types.UID, string) bool) *attempt {
	return &attempt{
		gang: gang, need: need, cancel: cancel, stands: stands, exists: exists,
		members: map[types.UID]*member{}, changed: make(chan struct{}),
	}
}

// join adds a member that has a node.
func (a *attempt) join(uid types.UID, name, node string, work bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.members[uid] = &member{name: name, node: node}
	a.work = a.work || work
}

// start notes that a member that was decided on goes its own way now.
func (a *attempt) start(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m := a.members[uid]; m != nil && m.stage == chosen {
		m.stage = coming
	}
}

// left is how many are still to go theirs.
func (a *attempt) left() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count(chosen) - a.count(coming)
}

// complete notes that as many have set out as the gang needs, and drops those that
// are gone meanwhile. It returns why nobody may go, if so.
func (a *attempt) complete() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.met {
		a.met = true
		a.look()
	}
	return a.err
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
	for _, m := range a.members {
		if m.stage >= at && m.stage != failed {
			n++
		}
	}
	return n
}

// fail notes that a member will not be bound. If too few are left, nobody is.
func (a *attempt) fail(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drop(uid, "could not be made ready")
}

// drop does that. The lock is held.
func (a *attempt) drop(uid types.UID, why string) {
	m := a.members[uid]
	if m == nil || m.stage == failed {
		return
	}
	m.stage, m.why = failed, why
	switch {
	case a.open: // the others have gone
	case a.count(chosen) < a.need:
		a.end(fmt.Errorf("member %s of gang %s %s, and the gang needs it: no member was bound", m.name, a.gang, why))
	default:
		a.tell()
	}
}

// look drops those who are gone by now, and those who are ready to go to nodes that
// are: the engine does not call off what is done for a pod because it was deleted.
// The lock is held.
func (a *attempt) look() {
	for _, uid := range slices.Sorted(maps.Keys(a.members)) {
		m := a.members[uid]
		switch {
		case !a.exists(uid, m.name):
			a.drop(uid, "is gone")
		case m.stage == ready && !a.stands(m.node):
			a.drop(uid, fmt.Sprintf("was to go to node %s, which is gone", m.node))
		}
	}
}

// pass lets those go who are ready if they are as many as the gang needs, and still
// there. That is decided once: who is ready later goes after them. The lock is held.
func (a *attempt) pass() {
	if a.open || a.err != nil || a.count(ready) < a.need {
		return
	}
	a.look()
	if a.err == nil && a.count(ready) >= a.need {
		a.open = true
		a.tell()
	}
}

// end has everybody fail that was not let go. Those that are still at it are
// called off: while they are, the engine takes them for placed.
func (a *attempt) end(err error) {
	if a.err != nil {
		return
	}
	a.err = err
	for uid, m := range a.members {
		if m.stage <= coming {
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

// errGone is why a member is not bound that was decided on.
func errGone(node string) error { return fmt.Errorf("node %s is gone", node) }

// errTimeout is why an attempt took too long.
var errTimeout = errors.New("timeout")

// wait notes that a member is ready, and returns when as many are as the gang
// needs, or an error when they cannot be any more or it takes too long.
func (a *attempt) wait(ctx context.Context, uid types.UID, timeout time.Duration) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	own := a.members[uid]
	if own.stage != failed {
		own.stage = ready
	}
	for {
		a.pass()
		switch {
		case a.err != nil:
			return a.err
		case own.stage == failed:
			return fmt.Errorf("member %s of gang %s %s", own.name, a.gang, own.why)
		case a.open:
			return nil
		}
		changed := a.changed
		a.mu.Unlock()
		select {
		case <-changed:
			a.mu.Lock()
		case <-timer.C:
			a.mu.Lock()
			n := a.count(ready)
			a.end(fmt.Errorf("%w: after %s only %d of %d members that gang %s needs are ready: no member was bound", errTimeout, timeout, n, a.need, a.gang))
		case <-ctx.Done():
			a.mu.Lock()
			return context.Cause(ctx)
		}
	}
}
