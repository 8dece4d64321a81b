package stage

import (
	"time"

	"github.com/gangctl/gangctl/pkg/cluster/view"
)

// ActsWithin is how long a scheduler may leave a gang alone for which it could do something before that is strange.
const ActsWithin = 5 * time.Minute

// UnchangedSince is the latest moment at which the gang, or the room for it, became what it is, as far as objects show.
func (c *Context) UnchangedSince() time.Time {
	last := view.Later(c.Gang.Meta.CreationTimestamp.Time, c.View.RoomSince())
	for _, pod := range c.Gang.ExistingPods() {
		last = view.Later(last, pod.CreationTimestamp.Time)
	}
	if d := c.Gang.Decl; d != nil {
		last = view.Later(last, d.Created)
	}
	return last
}
