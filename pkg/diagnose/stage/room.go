package stage

import (
	"fmt"
	"slices"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Lacking measures the room of the resource that is short on the cluster as it is, by the causes that are known; without any, of what the role
// that is hardest to place requests.
func (c *Context) Lacking() placement.Room {
	if causes := c.Causes(c.Cluster()); len(causes.All) > 0 {
		return c.RoomOf(c.Cluster(), causes, causes.First())
	}
	return c.LackingOn(c.Cluster(), *c.Placement)
}

// RoomOf measures the room for one of the causes on a cluster: of its resource, or, of a rule, of the device of the role that it keeps out.
func (c *Context) RoomOf(cluster *placement.Cluster, causes placement.Causes, cause placement.Cause) placement.Room {
	measure := func() (placement.Room, bool) {
		if r, ok := c.tools.CauseRoom(cluster, c.Request.Gang, causes, cause); ok {
			return r, true
		}
		limited := c.Limited(cause.Roles)
		if !cause.Constraint.Static() {
			limited = causes.Opened(limited)
		}
		return c.tools.MainRoom(cluster, limited, limited.Hardest(c.Placement.Placed)), c.Placement.Impossible()
	}
	same := c.same(cluster, c.Unreadable.Union(liftable()))
	if same == nil {
		r, _ := measure()
		return r
	}
	type roomOf struct {
		cluster *placement.Cluster
		causes  string
		placed  string // on the cluster as it is for the gang
	}
	placed := ""
	if c.Placement != nil {
		placed = fmt.Sprint(c.Placement.Placed)
	}
	return OnceForShape(c, roomOf{same, fmt.Sprint(cause.Constraint, causes), placed}, measure)
}

// MainRoom measures the room for a role on a cluster, of the device that it requests, or else of cpu.
func (c *Context) MainRoom(cluster *placement.Cluster, role placement.Role) placement.Room {
	return c.tools.MainRoom(cluster, c.Request.Gang, role)
}

// LackingOn measures the room for the role that is hardest to place on another cluster, given what a search found there.
func (c *Context) LackingOn(cluster *placement.Cluster, found placement.Result) placement.Room {
	same := c.same(cluster, c.Unreadable.Union(liftable()))
	if same == nil {
		return c.tools.Lacking(cluster, c.Request.Gang, found)
	}
	type lackingOn struct{ cluster *placement.Cluster }
	return OnceForShape(c, lackingOn{same}, func() (placement.Room, bool) {
		return c.tools.Lacking(cluster, c.Request.Gang, found), found.Impossible()
	})
}

// Devices counts, on a cluster, the devices that the resource claims of the gang are for; nil if there is no such number.
func (c *Context) Devices(cluster *placement.Cluster) []placement.DeviceCount {
	find := func() ([]placement.DeviceCount, bool) {
		counts := c.tools.Devices(cluster, c.Request.Roles)
		return counts, counts != nil // which it is, too, if the time ends
	}
	if !c.View.IsCommon(cluster) {
		counts, _ := find()
		return counts
	}
	type devicesOn struct{ cluster *placement.Cluster }
	return OnceForShape(c, devicesOn{cluster}, find)
}

// Limited is the gang if only some of its roles mattered: those of their members count that it needs if it has all of the others, with those that have a node. It is the gang
// itself for all roles.
func (c *Context) Limited(roles []placement.Role) placement.Gang {
	g := c.Request.Gang
	if len(roles) == len(g.Roles) {
		return g
	}
	all := g.Total()
	g.Roles, g.Bound = roles, nil
	for _, m := range c.Gang.Members {
		among := slices.ContainsFunc(roles, func(r placement.Role) bool { return phrase.Role(r.Name) == m.Role })
		if m.Pod != nil && among && slices.Contains(c.Request.Bound, m.Pod.UID) {
			g.Bound = append(g.Bound, m.Pod.UID)
		}
	}
	if g.MinMember > 0 {
		least := int32(len(g.Bound))
		for _, r := range roles {
			least += min(r.Min, r.Count)
		}
		g.MinMember = max(1, least, g.MinMember-(all-g.Total()))
	}
	return g
}

// Domains measures the room for the gang in each domain of a node label, on the cluster as it is.
func (c *Context) Domains(key string) []placement.DomainRoom {
	return c.DomainsOf(c.Cluster(), c.Request.Gang, key)
}

// DomainsOf measures the room for a gang in each domain of a node label on a cluster.
func (c *Context) DomainsOf(cluster *placement.Cluster, g placement.Gang, key string) []placement.DomainRoom {
	return c.tools.Domains(cluster, g, key)
}

// PartRooms measures the room for each part of the gang that must share a domain of its own, on the cluster as it is.
func (c *Context) PartRooms() []placement.PartRoom {
	return c.Cluster().PartRooms(c.Request.Gang, func(g placement.Gang, key string) []placement.DomainRoom {
		return c.tools.Domains(c.Cluster(), g, key)
	})
}

// DescribeRoom adds the numbers of a room, and how many members of its role fit.
func (f *Finding) DescribeRoom(c *Context, cluster *placement.Cluster, r placement.Room) *Finding {
	for key, value := range phrase.RoomFacts(r) {
		f.Fact(key, value)
	}
	return f.Fact("slots", OnceForRole(c, cluster, r.Role, fmt.Sprint("slots up to ", r.Role.Count), func() (int64, bool) { return Slots(cluster, r.Role), true }))
}

// Slots is how many members of a role fit on a cluster, each node looked at alone.
func Slots(cluster *placement.Cluster, role placement.Role) int64 {
	var sum int64
	for _, s := range placement.Slots(cluster, role.Pod, role.Count, placement.Options{}) {
		sum += s.Slots
	}
	return sum
}

// MostAbsent is of how many resources that no node offers answers speak: users may request any number.
const MostAbsent = 8
