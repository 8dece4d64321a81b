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

// attempt is the members of one gang that got a node in one cycle, and the stage that
// each of them has reached.
type attempt struct {
	gang     string // as users know it
	required int    // how many of the members must be bound
	// cancel ends the preparation of a member.
	cancel     func(types.UID, error)
	nodeExists func(node string) bool
	// podExists reports whether a pod exists and is not being deleted.
	podExists func(uid types.UID, name string) bool

	mu       sync.Mutex
	prepares bool // some member needs preparation
	members  map[types.UID]*member
	at       [failed + 1]int // how many members are at each stage
	waiting  []types.UID     // those that the engine has wait at Permit
	checked  bool            // the members were checked when as many had started as the gang requires
	open     bool            // as many were ready: those that are ready may be bound
	changed  chan struct{}   // closed and replaced at every change
	err      error           // why no member may be bound; nil as long as all may
}

// member is one of them: the node that it was assigned, and its stage.
type member struct {
	name, node string
	stage      stage
	why        string // it failed
}

type stage int

const (
	assigned stage = iota // has a node, and its own cycle has not started
	started               // its own cycle has started, and it may be in preparation
	ready                 // it is prepared
	failed
)

// Clone implements fwk.StateData: all members share one attempt.
func (a *attempt) Clone() fwk.StateData { return a }

func newAttempt(gang string, required int, cancel func(types.UID, error), nodeExists func(string) bool, podExists func(types.UID, string) bool) *attempt {
	return &attempt{
		gang: gang, required: required, cancel: cancel, nodeExists: nodeExists, podExists: podExists,
		members: map[types.UID]*member{}, changed: make(chan struct{}),
	}
}

// join adds a member that got a node. The engine may assign it once more: when it has
// tried several domains, and takes this one.
func (a *attempt) join(uid types.UID, name, node string, prepares bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.members[uid] == nil {
		a.at[assigned]++
	}
	a.members[uid] = &member{name: name, node: node}
	a.prepares = a.prepares || prepares
}

// start records that a member's own cycle has started.
func (a *attempt) start(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m := a.members[uid]; m != nil && m.stage == assigned {
		a.move(m, started)
	}
}

// hold records that the engine has a member wait at Permit. It reports whether it is
// the first.
func (a *attempt) hold(uid types.UID) (first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = append(a.waiting, uid)
	return len(a.waiting) == 1
}

// release returns the members that wait at Permit, and forgets them.
func (a *attempt) release() []types.UID {
	a.mu.Lock()
	defer a.mu.Unlock()
	waiting := a.waiting
	a.waiting = nil
	return waiting
}

// assignedCount returns the number of members whose own cycle is still to start.
func (a *attempt) assignedCount() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at[assigned]
}

// complete records that as many have started as the gang requires, and drops those
// that are gone meanwhile. It returns why no member may be bound, if so.
func (a *attempt) complete() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.checked {
		a.checked = true
		a.dropGone()
	}
	return a.err
}

// mustWait reports whether the members have to wait for each other: some member
// needs preparation, and one alone would not be enough.
func (a *attempt) mustWait() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.prepares && a.required > 1
}

// aborted returns why no member may be bound.
func (a *attempt) aborted() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// fail records that a member will not be bound. If too few are left, none is.
func (a *attempt) fail(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drop(uid, "could not be made ready")
}

// errTimeout is why an attempt took too long.
var errTimeout = errors.New("timeout")

// wait records that a member is ready, and returns when as many are as the gang
// requires, or an error when they cannot be any more or it takes too long.
func (a *attempt) wait(ctx context.Context, uid types.UID, timeout time.Duration) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	own := a.members[uid]
	if own.stage != failed {
		a.move(own, ready)
	}
	for {
		a.tryOpen()
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
			a.abort(fmt.Errorf("%w: after %s only %d of %d members that gang %s needs are ready: no member was bound", errTimeout, timeout, n, a.required, a.gang))
		case <-ctx.Done():
			a.mu.Lock()
			return context.Cause(ctx)
		}
	}
}

// The lock is held in the methods below.

// move brings a member to a stage.
func (a *attempt) move(m *member, to stage) {
	a.at[m.stage]--
	a.at[to]++
	m.stage = to
}

// count returns the number of members at a stage or further.
func (a *attempt) count(from stage) (n int) {
	for s := from; s < failed; s++ {
		n += a.at[s]
	}
	return n
}

// tryOpen opens the barrier if as many members are ready as the gang requires, and
// still exist. That is decided once: members that are ready later follow.
func (a *attempt) tryOpen() {
	if a.open || a.err != nil || a.count(ready) < a.required {
		return
	}
	a.dropGone()
	if a.err == nil && a.count(ready) >= a.required {
		a.open = true
		a.notify()
	}
}

// dropGone drops the members that are gone by now, and those that are ready for nodes
// that are: the engine does not cancel the preparation of a pod that is deleted.
func (a *attempt) dropGone() {
	for _, uid := range slices.Sorted(maps.Keys(a.members)) {
		m := a.members[uid]
		switch {
		case !a.podExists(uid, m.name):
			a.drop(uid, "is gone")
		case m.stage == ready && !a.nodeExists(m.node):
			a.drop(uid, fmt.Sprintf("was to go to node %s, which is gone", m.node))
		}
	}
}

// drop records that a member will not be bound.
func (a *attempt) drop(uid types.UID, why string) {
	m := a.members[uid]
	if m == nil || m.stage == failed {
		return
	}
	a.move(m, failed)
	m.why = why
	switch {
	case a.open: // the others are being bound
	case a.count(assigned) < a.required:
		a.abort(fmt.Errorf("member %s of gang %s %s, and the gang needs it: no member was bound", m.name, a.gang, why))
	default:
		a.notify()
	}
}

// abort fails every member, unless they were let through: the time of one may end while another opens the barrier. Those in preparation are
// cancelled: as long as they are, the engine counts them as scheduled.
func (a *attempt) abort(err error) {
	if a.err != nil || a.open {
		return
	}
	a.err = err
	for uid, m := range a.members {
		if m.stage <= started {
			a.cancel(uid, err)
		}
	}
	a.notify()
}

// notify wakes the members that wait.
func (a *attempt) notify() {
	close(a.changed)
	a.changed = make(chan struct{})
}
