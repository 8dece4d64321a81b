package placement

import (
	"slices"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/device"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/topology"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/volume"
	"github.com/gangctl/gangctl/pkg/placement"
)

// ruled finds that there is room, but that a rule about where members may be together, or where their data is, keeps them from it.
func ruled(c *stage.Context, cause placement.Cause, r placement.Room) *stage.Finding {
	role := r.Role
	code, _ := phrase.RuleCode(cause.Constraint)
	f := stage.Found(code, "").DescribeRoom(c, c.Cluster(), r)
	switch code {
	case answer.TopologyFragmented:
		topology.Together(c, f, role, cause.Roles)
	case answer.TopologySpread:
		topology.Spread(c, f, role, cause.Roles)
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
