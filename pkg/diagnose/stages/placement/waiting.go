package placement

import (
	"slices"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/autoscaler"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/noderule"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/volume"
	"github.com/gangctl/gangctl/pkg/placement"
)

// waiting finds that the ends of running jobs are enough, and what has to come free.
func waiting(c *stage.Context) []*stage.Finding {
	if found := append(lacks(c, c.Cluster()), leaving(c)...); len(found) > 0 {
		return found
	}
	if !c.Placement.Impossible() {
		return []*stage.Finding{notFound(c)} // it may fit as it is
	}
	r := c.Lacking()
	f := short(c, c.Cluster(), placement.Causes{}, r, false)
	return []*stage.Finding{f.Detail("whether something else is short, too, was not found out in time")}
}

// leaving finds that pods which are being deleted have some of what the gang waits for: without them less is lacking.
func leaving(c *stage.Context) []*stage.Finding {
	after := c.AfterDeletions()
	if after == c.Cluster() {
		return nil
	}
	left := c.Causes(after)
	for _, cause := range c.Causes(c.Cluster()).All {
		if len(left.All) > 0 && !slices.ContainsFunc(left.All, func(other placement.Cause) bool { return other.Constraint == cause.Constraint }) {
			return []*stage.Finding{victims(c, "which is a part of what it waits for")}
		}
	}
	return nil
}

// lacks finds what keeps the gang from its place on a cluster: the causes without which it would fit. Of several that are needed together the
// sentence of the first names the others.
func lacks(c *stage.Context, cluster *placement.Cluster) []*stage.Finding {
	causes := inPlace(c, cluster, c.Causes(cluster))
	var found []*stage.Finding
	for _, cause := range causes.Ordered() {
		f := lack(c, cluster, causes, cause, onlyCause(causes))
		addInstead(c, f, causes)
		if len(found) > 0 {
			and(found[0], f)
		}
		found = append(found, f)
	}
	return found
}

// onlyCause reports whether there is one cause and no other.
func onlyCause(causes placement.Causes) bool { return len(causes.All) == 1 }

// lack finds that one cause keeps the gang waiting; alone, if it would fit on the cluster without that.
func lack(c *stage.Context, cluster *placement.Cluster, causes placement.Causes, cause placement.Cause, alone bool) *stage.Finding {
	r := c.RoomOf(cluster, causes, cause)
	switch cause.Constraint {
	case placement.VolumeClaim:
		if f, _ := volume.InUse(c); f != nil {
			return f
		}
		return short(c, cluster, causes, r, alone)
	case placement.PodAffinity, placement.TopologySpread, placement.VolumeZone, placement.DRADevices:
		return ruled(c, cause, r)
	case placement.HostPort, placement.VolumeLimits, placement.PodAntiAffinity:
		return kept(c, cause, r, alone)
	case placement.NodeSelector, placement.Taint:
		return busy(c, cluster, causes, r)
	default:
		return tied(c, short(c, cluster, causes, r, alone), causes, r)
	}
}

// short finds that a resource is short: in all, or in pieces that are large enough, or where others are not.
func short(c *stage.Context, cluster *placement.Cluster, causes placement.Causes, r placement.Room, alone bool) *stage.Finding {
	if all := shortages(c, cluster, r); all != nil {
		return scattered(c, cluster, causes, r, alone, all)
	}
	switch code := answer.Shortage(string(r.Resource), r.Requested <= r.Free); code {
	case answer.Fragmented:
		return fragmented(c, r)
	case answer.NodesBusy:
		return busy(c, cluster, causes, r)
	default:
		return insufficient(c, cluster, code, r, alone)
	}
}

// busy finds that the room is taken.
func busy(c *stage.Context, cluster *placement.Cluster, causes placement.Causes, r placement.Room) *stage.Finding {
	f := stage.Found(answer.NodesBusy, "%s", phrase.Busy(r, allowed(c, causes, r))).DescribeRoom(c, cluster, r)
	for _, line := range c.ConsumersOn(r.NodeNames(), r.Resource) {
		f.Detail("%s", line)
	}
	return elsewhere(c, f, cluster, causes, r)
}

// elsewhere adds that other nodes could be used, or could come.
func elsewhere(c *stage.Context, f *stage.Finding, cluster *placement.Cluster, causes placement.Causes, r placement.Room) *stage.Finding {
	if taints := untolerated(c, cluster, causes, r); taints != "" {
		f.Detail("it would fit if it tolerated %s", taints)
	}
	noderule.TolerationHints(c, f, r.Role)
	autoscaler.Report(c, f)
	return f
}
