package stage

import (
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Lacking measures the room for the role that is hardest to place, on the cluster as it is.
func (c *Context) Lacking() placement.Room {
	type lacking struct{}
	return view.OnceForShape(c.View, c.Request.Shape, lacking{}, func() (placement.Room, bool) {
		return c.View.Cluster().Lacking(c.Request.Gang, *c.Placement), c.Placement.Impossible()
	})
}

// DescribeRoom adds the numbers of a room, and how many members of its role fit.
func (f *Finding) DescribeRoom(cluster *placement.Cluster, r placement.Room) *Finding {
	for key, value := range phrase.RoomFacts(r) {
		f.Fact(key, value)
	}
	return f.Fact("slots", Slots(cluster, r.Role))
}

// Slots is how many members of a role fit on a cluster, each node looked at alone.
func Slots(cluster *placement.Cluster, role placement.Role) int64 {
	var sum int64
	for _, s := range placement.Slots(cluster, role.Pod, role.Count, placement.Options{}) {
		sum += s.Slots
	}
	return sum
}
