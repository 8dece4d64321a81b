package placement

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/autoscaler"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/device"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/noderule"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/topology"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/volume"
	"github.com/gangctl/gangctl/pkg/placement"
)

// absence is a check for something that a role names, and the constraints that do not count for the rest of the diagnosis where it is not there.
type absence struct {
	check       func(*stage.Context, *stage.Result, placement.Role)
	constraints placement.Constraints
}

// absences are what no amount of waiting brings: a resource, a label or a volume that is not there.
func absences() []absence {
	set := func(all ...placement.Constraint) placement.Constraints { return placement.Constraints{}.Insert(all...) }
	return []absence{
		{device.Resources, nil}, // those that are not there: see absentResources
		{noderule.Selector, set(placement.NodeSelector, placement.NodeAffinity)},
		{topology.Labels, set(placement.PodAffinity, placement.TopologySpread, placement.Topology)},
		{volume.Claims, set(placement.VolumeClaim, placement.VolumeZone, placement.VolumeNode, placement.VolumeLimits)},
		{device.Claims, set(placement.DRADevices)},
	}
}

// absent looks for what is not there, and returns the request as if it were: what else keeps the gang from its place is found with that. Members
// that the gang can do without are left out of it, and what they lack is a remark.
func absent(c *stage.Context, out *stage.Result) (request view.PlacementRequest, changed bool) {
	request = c.Request
	request.Roles = slices.Clone(request.Roles)
	before := len(out.Findings)
	var possible []placement.Role
	for i := range request.Roles {
		role := &request.Roles[i]
		for _, a := range absences() {
			from := len(out.Findings)
			if a.check(c, out, *role); len(out.Findings) > from {
				role.Ignore = role.Ignore.Union(a.constraints).Union(absentResources(out.Findings[from:]))
				if a.constraints.Has(placement.Topology) {
					request.Topology.Required = ""
				}
			}
		}
		if len(role.Ignore) == 0 {
			possible = append(possible, *role)
		}
	}
	if len(out.Findings) == before {
		return c.Request, false
	}
	autoscaler.Absent(c, out, before)
	if needless(request.Gang, possible) {
		for _, f := range out.Findings[before:] {
			out.Note("the gang needs %d of %d members, and some of the others cannot be placed: %s", c.Gang.Min, c.Gang.Total(), f.Message)
		}
		out.Findings = out.Findings[:before]
		request.Roles = possible
	}
	if request.Shape != "" {
		for _, r := range request.Roles {
			request.Shape += fmt.Sprintf("\n%s without %q", r.Name, sets.List(r.Ignore))
		}
	}
	return request, true
}

// absentResources are the resources that findings are about.
func absentResources(findings []stage.Finding) placement.Constraints {
	all := placement.Constraints{}
	for _, f := range findings {
		if name, ok := f.Facts["resource"].(string); ok {
			all.Insert(placement.Resource(corev1.ResourceName(name)))
		}
	}
	return all
}

// needless reports whether the gang has its minimum with some of its roles alone.
func needless(g placement.Gang, some []placement.Role) bool {
	members := int32(len(g.Bound))
	for _, r := range some {
		members += r.Count
	}
	optional := !slices.ContainsFunc(g.Roles, func(r placement.Role) bool {
		return r.Min > 0 && !slices.ContainsFunc(some, func(s placement.Role) bool { return s.Name == r.Name })
	})
	return optional && g.MinMember > 0 && members >= g.MinMember && len(some) > 0
}
