package aging

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// age is what was seen of a gang.
type age struct {
	// idle is when it was last seen not to want places, first when it was first
	// seen to wait. Either is zero if it was not.
	idle, first time.Time
}

// waiting lists the gangs that wait, with since when they do. Their pods say since
// when they have no place, which they have not from the start: as long as they
// were held back by a gate, or members were missing, does not count. That they
// were is known to whoever saw it; a scheduler that takes over goes by the pods.
// There are none before there is a source.
func (k *Keeper) waiting() []Gang {
	k.mu.Lock()
	source := k.source
	k.mu.Unlock()
	if source == nil {
		return nil
	}
	all, now := source.Gangs(), k.clock.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	ages := make(map[types.NamespacedName]age, len(all))
	var waiting []Gang
	for _, g := range all {
		a := k.ages[g.Group]
		switch {
		case g.Idle:
			a = age{idle: now}
		case g.Waits:
			if g.Since.Before(a.idle) {
				g.Since = a.idle
			}
			if g.Since.IsZero() {
				if a.first.IsZero() {
					a.first = now
				}
				g.Since = a.first
			}
			waiting = append(waiting, g)
		}
		ages[g.Group] = a
	}
	k.ages = ages
	return waiting
}
