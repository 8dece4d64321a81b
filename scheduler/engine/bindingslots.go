package engine

import (
	"container/list"
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// slots is how many bindings are under way at once. With more of them the API server answers none sooner, and the last
	// member of a gang would be bound seconds after its first.
	slots = 16
	// slotsAgain is how many of them bindings have at most that are sent again, while others wait.
	slotsAgain = slots / 2
	// slotTime is how long a binding occupies a slot. One that takes longer, because of a webhook or an outage, does not count
	// any more.
	slotTime = time.Second
	// priorityTime is how long, in a burst, bindings come before events and statuses: as long as an autoscaler takes between two looks at the pods
	// that wait. burstGap is the pause that ends a burst.
	priorityTime = 10 * time.Second
	burstGap     = time.Second
)

// bindingSlots let some bindings be under way at once, in the order of their requests. Those that are sent again come before those that are sent for the
// first time: the others of their gang have their nodes, and do nothing until they have one. They have half of the slots at most, so that bindings that fail
// for good, however long each takes, leave the other half.
type bindingSlots struct {
	clock clock.WithDelayedExecution

	mu     sync.Mutex
	free   int
	resent int        // slots that bindings have which are sent again
	again  *list.List // of bindings that wait: chan struct{}, closed when it has a slot
	first  *list.List
	began  time.Time     // when the burst began in which they wait
	ended  time.Time     // when none was waiting any more
	idle   chan struct{} // closed when none is waiting any more
}

func newBindingSlots(c clock.WithDelayedExecution) *bindingSlots {
	return &bindingSlots{clock: c, free: slots, again: list.New(), first: list.New()}
}

// enter waits for a slot. The slot is free again when leave is called, or after slotTime.
func (s *bindingSlots) enter(ctx context.Context, again bool) (leave func(), err error) {
	if turn, cancel := s.take(again); turn != nil {
		select {
		case <-turn:
		case <-ctx.Done():
			cancel()
			return nil, ctx.Err()
		}
	}
	release := sync.OnceFunc(func() { s.release(again) })
	timer := s.clock.AfterFunc(slotTime, release)
	return func() {
		timer.Stop()
		release()
	}, nil
}

// take takes a slot, and returns nil, or queues: the channel is closed when it is the binding's turn, unless that is cancelled before.
func (s *bindingSlots) take(again bool) (turn chan struct{}, cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free > 0 {
		s.free--
		s.give(again)
		return nil, nil
	}
	if s.waiting() == 0 {
		s.idle = make(chan struct{})
		if s.clock.Since(s.ended) > burstGap {
			s.began = s.clock.Now()
		}
	}
	queue := s.first
	if again {
		queue = s.again
	}
	turn = make(chan struct{})
	place := queue.PushBack(turn)
	return turn, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		select {
		case <-turn: // it has a slot by now
			s.next(again)
		default:
			queue.Remove(place)
			s.left()
		}
	}
}

func (s *bindingSlots) waiting() int { return s.again.Len() + s.first.Len() }

func (s *bindingSlots) release(again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next(again)
}

// give counts a slot that a binding gets. The lock must be held.
func (s *bindingSlots) give(again bool) {
	if again {
		s.resent++
	}
}

// next gives the slot that a binding had to who waits for one. The lock must be held.
func (s *bindingSlots) next(again bool) {
	if again {
		s.resent--
	}
	if s.waiting() == 0 {
		s.free++
		return
	}
	queue := s.first
	if s.again.Len() > 0 && (s.first.Len() == 0 || s.resent < slotsAgain) {
		queue = s.again
	}
	s.give(queue == s.again)
	close(queue.Remove(queue.Front()).(chan struct{}))
	s.left()
}

// left ends the wait of those that wait for bindings, if none waits any more. The lock must be held.
func (s *bindingSlots) left() {
	if s.waiting() == 0 {
		s.ended = s.clock.Now()
		close(s.idle)
	}
}

// busy reports whether bindings wait for a slot, for how long that is to count, and what is closed when none waits any more. In a long burst it does not count.
func (s *bindingSlots) busy() (idle chan struct{}, left time.Duration, busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left = priorityTime - s.clock.Since(s.began)
	return s.idle, left, s.waiting() > 0 && left > 0
}

// awaitIdle waits until no binding waits for a slot. In a long burst it does not wait.
func (s *bindingSlots) awaitIdle(ctx context.Context) {
	idle, left, busy := s.busy()
	if !busy {
		return
	}
	timer := s.clock.NewTimer(left)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C():
	case <-ctx.Done():
	}
}
