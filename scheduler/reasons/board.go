// Package reasons is where the parts of the scheduler leave what they found out
// about a gang that waits, for the parts that tell users. Nothing on it steers
// a decision. It also says how often users are told: what changes every second
// must not be written every second.
package reasons

import (
	"maps"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// Board holds the newest note on every gang that waits, by the name of its
// virtual PodGroup. Its methods may be called from several goroutines.
type Board struct {
	// Changed is called after a change, outside of any lock; it may be nil. It
	// is set once, before the board is used.
	Changed func(group types.NamespacedName)
	// Clock is nil for the real one.
	Clock clock.PassiveClock

	mu    sync.Mutex
	count *counters
	notes map[types.NamespacedName]Note
	told  map[types.NamespacedName]*told
}

// Post replaces the note on a gang.
func (b *Board) Post(group types.NamespacedName, note Note) {
	b.mu.Lock()
	old, known := b.notes[group]
	if b.notes == nil {
		b.notes = map[types.NamespacedName]Note{}
	}
	b.notes[group] = note
	b.count.waits(old, known, -1)
	b.count.waits(note, true, 1)
	b.mu.Unlock()
	old.NextAttempt = note.NextAttempt
	if known && reflect.DeepEqual(old, note) {
		return
	}
	if b.Changed != nil {
		b.Changed(group)
	}
}

// Clear removes the note on a gang, which has a place now, lacks members or is
// gone.
func (b *Board) Clear(group types.NamespacedName) {
	b.mu.Lock()
	old, known := b.notes[group]
	delete(b.notes, group)
	b.count.waits(old, known, -1)
	b.quiet(group)
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

// All returns every note.
func (b *Board) All() map[types.NamespacedName]Note {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.notes)
}

func (b *Board) now() time.Time {
	if b.Clock == nil {
		return time.Now()
	}
	return b.Clock.Now()
}
