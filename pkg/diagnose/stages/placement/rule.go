package placement

import (
	"fmt"
	"slices"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/device"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/volume"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// ruled finds that there is room, but that a rule about where members may be together, or where their data is, keeps them from it.
func ruled(c *stage.Context, cause placement.Cause, r placement.Room) *stage.Finding {
	role := r.Role
	code, _ := phrase.RuleCode(cause.Constraint)
	f := stage.Found(code, "").DescribeRoom(c, c.Cluster(), r)
	switch code {
	case answer.TopologyFragmented:
		if rooms := partRooms(c, cause.Roles); len(rooms) > 0 {
			parts(f, rooms)
		} else {
			rack(c, f, role, cause.Roles)
		}
	case answer.TopologySpread:
		spread(c, f, role, cause.Roles)
	case answer.VolumeZone:
		volume.Elsewhere(c, f, r)
	default:
		f.Message = device.Taken(c, f)
	}
	switch {
	case f.Facts["resourceClaim"] != nil:
		return f // no others have the devices
	case code == answer.DRAUnallocatable || code == answer.TopologySpread:
		return listed(f, users(c, usages(c, c.Cluster(), cause.Constraint, r)))
	}
	return listed(f, c.ConsumersOn(relevant(c, code, r), r.Resource))
}

// relevant are the nodes on which other pods stand in the way.
func relevant(c *stage.Context, code answer.Code, r placement.Room) []string {
	if code != answer.VolumeZone {
		return r.NodeNames()
	}
	m := c.Matrices[r.Role.Name]
	zone := slices.Concat(m.Rejected(placement.VolumeZone), m.Rejected(placement.VolumeNode))
	var nodes []string
	for _, row := range m.Rows {
		if !slices.Contains(zone, row.Node) {
			nodes = append(nodes, row.Node)
		}
	}
	return nodes
}

// topologyKey is the node label of the rule that members share a domain.
func topologyKey(c *stage.Context, role placement.Role) string {
	if c.Request.Topology.Required != "" {
		return c.Request.Topology.Required
	}
	if hasAffinity(role.Pod) {
		return role.Pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey
	}
	return ""
}

// rack finds that enough nodes are free, but not in one domain.
func rack(c *stage.Context, f *stage.Finding, role placement.Role, roles []placement.Role) {
	key := topologyKey(c, role)
	g, which := sharing(c, roles)
	rooms := c.DomainsOf(c.Cluster(), g, key)
	var free int32
	var parts []string
	for _, r := range rooms {
		free = gang.Sum(free, r.Members)
		parts = append(parts, fmt.Sprintf("%s %d", r.Domain, r.Members))
	}
	if len(rooms) > 0 {
		f.Fact("bestDomain", rooms[0].Domain).Fact("bestFits", rooms[0].Members)
	}
	f.Message = phrase.TogetherOf(which, g, key, rooms, c.Cluster().BoundDomains(g.Bound, key))
	if text := attraction(c, role); text != "" {
		f.Message = fmt.Sprintf("%s: %d of %d members fit there", text, c.Placed(*c.Placement), c.Gang.Total())
	}
	f.Detail("places by %s: %s", phrase.Level(key), phrase.Names(parts)).Fact("topologyKey", key).Fact("fitsAnywhere", free)
	wider(c, f, role)
}

// sharing is the gang of those members that must share a domain, and which these are, as the end of a noun: all, or those of the roles with the rule.
func sharing(c *stage.Context, roles []placement.Role) (g placement.Gang, which string) {
	if c.Request.Topology.Required != "" {
		return c.Request.Gang, ""
	}
	return c.Limited(roles), ofRoles(c, roles)
}

// ofRoles names the roles that a rule is about, as the end of a noun: of role Worker. It is empty for all roles of the gang.
func ofRoles(c *stage.Context, roles []placement.Role) string {
	if len(roles) == len(c.Request.Roles) {
		return ""
	}
	var names []string
	for _, r := range roles {
		if name := phrase.Role(r.Name); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return fmt.Sprintf(" of %s %s", phrase.Verb(len(names), "role", "roles"), phrase.Names(names))
}

// partRooms is the room for each part of the gang; none if it is no rule for parts that keeps the roles of a cause from a placement.
func partRooms(c *stage.Context, roles []placement.Role) []placement.PartRoom {
	divided := func(r placement.Role) bool { return len(c.Request.Topology.PartKeys(r.Pod)) > 0 && !hasAffinity(r.Pod) }
	if !slices.ContainsFunc(roles, divided) {
		return nil
	}
	if key := c.Request.Topology.Required; key != "" && !roomy(c, key) {
		return nil // no domain has room for all of them
	}
	return c.PartRooms()
}

// roomy reports whether one domain of a label has room for as many members as the gang needs.
func roomy(c *stage.Context, key string) bool {
	needs := c.Request.Total()
	if c.Request.MinMember > 0 {
		needs = min(needs, c.Request.MinMember)
	}
	return placement.RoomyDomain(c.Domains(key), needs-int32(len(c.Request.Bound)), c.Cluster().BoundDomains(c.Request.Bound, key))
}

// parts finds that enough nodes are free, but not in one domain for each part of the gang.
func parts(f *stage.Finding, rooms []placement.PartRoom) {
	f.Message = phrase.TogetherInParts(rooms)
	for _, p := range rooms {
		var places []string
		for _, r := range p.Rooms {
			places = append(places, fmt.Sprintf("%s %d", r.Domain, r.Members))
		}
		f.Detail("places for the %d members%s by %s: %s", p.Total(), p.Members(), phrase.Level(p.Rule.Required), phrase.Names(places))
	}
	f.Fact("topologyKey", rooms[0].Rule.Required).Fact("parts", len(rooms))
}

// maxWider is how many wider labels are tried.
const maxWider = 4

// wider adds the narrowest node label around the one by which members must share a domain of which one domain has room for them: a block for racks.
func wider(c *stage.Context, f *stage.Finding, role placement.Role) {
	key := c.Request.Topology.Required
	if key == "" {
		return
	}
	around := slices.DeleteFunc(c.Cluster().Around(key), func(other string) bool { return c.Gang.Decl == nil || !patch.CanRequire(c.Gang.Decl, other) })
	for _, other := range around[:min(len(around), maxWider)] {
		request := c.Request
		if request.Topology.Required = other; request.Shape != "" {
			request.Shape += "\nin one " + other
		}
		found := c.For(request).Fit(c.Cluster(), nil)
		if !found.Fits() || len(found.Placement) == 0 {
			continue
		}
		domain := c.Cluster().Node(found.Placement[0].Node).Labels[other]
		f.Message += fmt.Sprintf("; %s would do", phrase.Place(other, domain))
		f.Fact("widerKey", other).Fact("widerDomain", domain).Fix(otherTopology(c, role, key, other))
		return
	}
}
