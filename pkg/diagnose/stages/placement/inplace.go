package placement

import (
	"slices"

	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/volume"
	"github.com/gangctl/gangctl/pkg/placement"
)

// inPlace are causes by which a gang is explained whose volumes tie it to some nodes. It would fit without its volumes, as there is room elsewhere; but where there are enough of its devices on
// the nodes of the volumes, too, and one other resource is all that is short there, that is the cause: its volumes stay where they are.
func inPlace(c *stage.Context, cluster *placement.Cluster, causes placement.Causes) placement.Causes {
	if len(causes.All) != 1 || causes.All[0].Constraint != placement.VolumeZone {
		return causes
	}
	r := c.RoomOf(cluster, causes, causes.All[0])
	short := slices.IndexFunc(causes.Instead, func(other placement.Cause) bool {
		return isAmount(other) && other.Constraint != placement.Resource(r.Resource)
	})
	if short < 0 || !roomFor(r) {
		return causes
	}
	others := slices.Delete(slices.Clone(causes.Instead), short, short+1)
	return placement.Causes{All: causes.Instead[short : short+1], Instead: append(others, causes.All[0]), Cut: causes.Cut}
}

// roomFor reports whether the nodes of a room have enough of its resource for all of its members, on one node or another.
func roomFor(r placement.Room) bool {
	if r.PerMember <= 0 {
		return false
	}
	var slots int64
	for _, n := range r.Nodes {
		slots += max(0, n.Free) / r.PerMember
	}
	return slots >= int64(r.Members)
}

// isAmount reports whether a cause is a resource.
func isAmount(cause placement.Cause) bool {
	_, ok := cause.Constraint.ResourceName()
	return ok
}

// tied adds to a finding about a resource that is short on the nodes of the volumes of members where these are, if that is why no other nodes do.
func tied(c *stage.Context, f *stage.Finding, causes placement.Causes, r placement.Room) *stage.Finding {
	if slices.ContainsFunc(causes.Instead, func(other placement.Cause) bool { return other.Constraint == placement.VolumeZone }) {
		volume.Here(c, f, r.Role)
	}
	return f
}
