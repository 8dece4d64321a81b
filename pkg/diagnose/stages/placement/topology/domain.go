package topology

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Together finds that enough nodes are free, but not in one domain for the members, or not in one for each part of the gang.
func Together(c *stage.Context, f *stage.Finding, role placement.Role, roles []placement.Role) {
	if rooms := partRooms(c, roles); len(rooms) > 0 {
		parts(f, rooms)
	} else {
		rack(c, f, role, roles)
	}
}

// TogetherCeiling is the sentence for members that must share a domain, none of which has room for them on the cluster at its best.
func TogetherCeiling(c *stage.Context, role placement.Role, roles []placement.Role, ideal placement.Result) string {
	fitted := fmt.Sprintf("%d of %d members", c.Placed(ideal), c.Gang.Total())
	if key := c.Request.Topology.Required; key != "" && len(c.Request.Bound) > 0 {
		return phrase.Together(c.Request.Gang, key, c.Domains(key), c.Cluster().BoundDomains(c.Request.Bound, key))
	}
	if rooms := partRooms(c, roles); len(rooms) > 0 {
		return fmt.Sprintf("%s: %s fit", phrase.TogetherInParts(rooms), fitted)
	}
	if text := attraction(c, role); text != "" {
		return fmt.Sprintf("%s: %s fit", text, fitted)
	}
	key := Key(c, role)
	if g, which := sharing(c, roles); which != "" && key != "" {
		return fmt.Sprintf("%s: %s fit", phrase.TogetherOf(which, g, key, c.DomainsOf(c.Best(), g, key), nil), fitted)
	}
	return fmt.Sprintf("all %d members must share one %s, and the largest has room for %d", max(c.Gang.Min, c.Request.MinMember), phrase.Domain(cmp.Or(key, "their topology label")), c.Placed(ideal))
}

// Key is the node label of the rule that members share a domain.
func Key(c *stage.Context, role placement.Role) string {
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
	key := Key(c, role)
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
	Wider(c, f, role)
}

// sharing is the gang of those members that must share a domain, and which these are, as the end of a noun: all, or those of the roles with the rule.
func sharing(c *stage.Context, roles []placement.Role) (g placement.Gang, which string) {
	if c.Request.Topology.Required != "" {
		return c.Request.Gang, ""
	}
	return c.Limited(roles), OfRoles(c, roles)
}

// OfRoles names the roles that a rule is about, as the end of a noun: of role Worker. It is empty for all roles of the gang.
func OfRoles(c *stage.Context, roles []placement.Role) string {
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

// Wider adds the narrowest node label around the one by which members must share a domain of which one domain has room for them: a block for racks.
func Wider(c *stage.Context, f *stage.Finding, role placement.Role) {
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
