package belowmin

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
)

// way is the members of a gang that were decided on and of which it is not known
// yet whether they are bound: they wait for others, for a volume, or for the
// answer of an API server that may be away. As long as there is one, nobody can
// tell how many members have places; it is the one answer to that question that
// there is.
type way struct {
	members map[types.UID]bool
	since   time.Time     // when the first of those that are on it now set out
	spent   time.Duration // how long others were on it before
}

// setOut notes that a member was decided on.
func (c *Controller) setOut(group types.NamespacedName, uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.ways[group]
	if w == nil {
		w = &way{members: map[types.UID]bool{}}
		c.ways[group] = w
	}
	if len(w.members) == 0 {
		w.since = c.Clock.Now()
	}
	w.members[uid] = true
}

// arrive notes that it is known of a member whether it is bound. With the last
// one its gang is looked at.
func (c *Controller) arrive(group types.NamespacedName, uid types.UID) {
	c.mu.Lock()
	w := c.ways[group]
	if w == nil || !w.members[uid] {
		c.mu.Unlock()
		return
	}
	delete(w.members, uid)
	last := len(w.members) == 0
	if last {
		w.spent += c.Clock.Now().Sub(w.since)
	}
	c.mu.Unlock()
	if key, err := gang.ParseVirtualName(group.Namespace, group.Name); last && err == nil {
		c.Touch(key)
	}
}

// onTheWay tells whether members of a gang are on their way, and how long some
// were in all, since it was forgotten last.
func (c *Controller) onTheWay(group types.NamespacedName) (spent time.Duration, now bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.ways[group]
	if w == nil {
		return 0, false
	}
	if now = len(w.members) > 0; now {
		return w.spent + c.Clock.Now().Sub(w.since), now
	}
	return w.spent, now
}

// forget drops what is known of a gang's way, if nobody is on it.
func (c *Controller) forget(group types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.ways[group]; w != nil && len(w.members) == 0 {
		delete(c.ways, group)
	}
}
