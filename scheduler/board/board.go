// Package board is where the parts of the scheduler leave what they found out
// about a gang that waits, for the part that tells users. Nothing on it steers
// a decision.
package board

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/explain/answer"
)

// Note is why a gang has no place at this moment.
type Note struct {
	// Finding is in the words and codes of why-pending. Its Message is whole
	// and free of times and counters that change while nothing else does: a
	// new message is a write.
	Finding answer.Finding
	// Need is how many members must have a place, those that have one included,
	// and Fit how many of them do or could at once.
	Need, Fit int32
	// Shortages are the resources of which there is too little.
	Shortages []Shortage
	// Blockers name the gangs, holds and reservations in the way, as NAMESPACE/NAME.
	Blockers []string
	// NextAttempt is when the gang is tried again whatever happens; zero where
	// only a change in the cluster brings that about.
	NextAttempt time.Time
}

// Shortage is one resource in Kubernetes' units.
type Shortage struct {
	Resource                    string
	Requested, Available, Total string
}

// Board holds the newest note on every gang that waits, by the name of its
// virtual PodGroup. Its methods may be called from several goroutines.
type Board struct {
	// Changed is called after a change, outside of any lock; it may be nil. It
	// is set once, before the board is used.
	Changed func(group types.NamespacedName)

	mu    sync.Mutex
	notes map[types.NamespacedName]Note
}

// Post replaces the note on a gang.
func (b *Board) Post(group types.NamespacedName, note Note) {
	b.mu.Lock()
	old, known := b.notes[group]
	same := known && reflect.DeepEqual(old, note)
	if !same {
		if b.notes == nil {
			b.notes = map[types.NamespacedName]Note{}
		}
		b.notes[group] = note
	}
	b.mu.Unlock()
	if !same && b.Changed != nil {
		b.Changed(group)
	}
}

// Clear removes the note on a gang, which has a place now or is gone.
func (b *Board) Clear(group types.NamespacedName) {
	b.mu.Lock()
	_, known := b.notes[group]
	delete(b.notes, group)
	b.mu.Unlock()
	if known && b.Changed != nil {
		b.Changed(group)
	}
}

// Get returns the note on a gang; ok is false where there is none.
func (b *Board) Get(group types.NamespacedName) (note Note, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	note, ok = b.notes[group]
	return note, ok
}
