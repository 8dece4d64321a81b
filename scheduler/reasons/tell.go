package reasons

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// PerMinute is how often a gang's users are told something new within a
	// minute, at most. Each time costs a condition for every member that waits,
	// an event and, where the gang's object has conditions, a status.
	PerMinute = 4
	// minute is the time that PerMinute is about.
	minute = time.Minute
	// settled is how long numbers stand: what differs in them alone from what was
	// told is told after this.
	settled = 15 * time.Second
)

// Pace bounds how often something is said: PerMinute times in any minute.
type Pace struct {
	times []time.Time // of the newest, oldest first
}

// Wait is how long it has to be put off; zero if it may be said now.
func (p *Pace) Wait(now time.Time) time.Duration {
	if len(p.times) < PerMinute {
		return 0
	}
	return max(0, p.times[0].Add(minute).Sub(now))
}

// Said notes that it is said.
func (p *Pace) Said(now time.Time) {
	if p.times = append(p.times, now); len(p.times) > PerMinute {
		p.times = p.times[1:]
	}
}

// Over tells whether nothing was said within a minute, so that nothing is lost
// with it.
func (p *Pace) Over(now time.Time) bool { return now.Sub(p.last()) >= minute }

// last is when it was said last; zero if it never was.
func (p *Pace) last() time.Time {
	if len(p.times) == 0 {
		return time.Time{}
	}
	return p.times[len(p.times)-1]
}

// told is what users of a gang have been told.
type told struct {
	note Note
	pace Pace
	// fresh: nobody has taken the note for an event yet.
	fresh bool
	// over: it waits no more.
	over bool
}

// Tell returns what users are to be told of a gang of which this note is true
// now. It is an older one where there is nothing new, or where they were told
// too often already; it may then be told anew after again. Heard says that the
// gang's members say so already, as after a restart of the scheduler.
func (b *Board) Tell(group types.NamespacedName, note Note, heard bool) (say Note, again time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.tidy(now)
	t := b.told[group]
	switch {
	case t == nil:
		t = &told{}
		if b.told == nil {
			b.told = map[types.NamespacedName]*told{}
		}
		b.told[group] = t
	case !t.over && t.note.says(&note):
		return t.note, 0
	}
	if wait := t.wait(now, &note); wait > 0 {
		if t.over { // the members say something else now, so the truth costs as much as anything
			t.note, t.fresh, t.over = note, false, false
		}
		return t.note, wait
	}
	t.note, t.fresh, t.over = note, !note.Surplus && !heard, false
	if heard {
		return note, 0
	}
	t.pace.Said(now)
	b.count.told(note)
	return note, 0
}

// wait is how long a note has to wait until it may be told.
func (t *told) wait(now time.Time, note *Note) time.Duration {
	wait := t.pace.Wait(now)
	if !t.over && t.note.Finding.Code == note.Finding.Code {
		wait = max(wait, t.pace.last().Add(settled).Sub(now))
	}
	return wait
}

// Told is what users have been told of a gang that waits; ok is false where that
// is nothing. News is true the first time that it is asked for.
func (b *Board) Told(group types.NamespacedName) (note Note, news, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.told[group]
	if t == nil || t.over {
		return Note{}, false, false
	}
	news, t.fresh = t.fresh, false
	return t.note, news, true
}

// Said is what users have been told of a gang that waits; ok is false where that
// is nothing. Whether it is news is left for [Board.Told].
func (b *Board) Said(group types.NamespacedName) (note Note, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.told[group]; t != nil && !t.over {
		return t.note, true
	}
	return Note{}, false
}

// quiet notes that what users were told is over. How often they were is kept for
// a while. The lock is held.
func (b *Board) quiet(group types.NamespacedName) {
	if t := b.told[group]; t != nil {
		t.over = true
	}
}

// tidy forgets gangs of which nothing was said for long. The lock is held.
func (b *Board) tidy(now time.Time) {
	for group, t := range b.told {
		if t.over && now.Sub(t.pace.last()) > minute {
			delete(b.told, group)
		}
	}
}
