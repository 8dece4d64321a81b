package stage

import (
	"slices"

	"github.com/gangctl/gangctl/pkg/cluster/view"
)

// LatestEvent is the latest event of one of the reasons; nil if there is none. Events are sorted, the latest first.
func LatestEvent(events []view.Event, reasons ...string) *view.Event {
	for i := range events {
		if slices.Contains(reasons, events[i].Reason) {
			return &events[i]
		}
	}
	return nil
}

// LatestUnless is the latest event of a reason, unless one of the others came after it: what it reports has passed then.
func LatestUnless(events []view.Event, reason string, after ...string) *view.Event {
	e := LatestEvent(events, reason)
	if passed := LatestEvent(events, after...); e != nil && passed != nil && passed.Last.After(e.Last) {
		return nil
	}
	return e
}
