package place

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/pkg/setup/argv"
)

// rule is a constraint that is not about amounts, and the code for a gang that fits without it.
type rule struct {
	code   answer.Code
	ignore placement.Constraints
}

// rules in the order in which they are tried.
var rules = []rule{
	{answer.TopologyFragmented, placement.Constraints{}.Insert(placement.PodAffinity, placement.Topology)},
	{answer.TopologySpread, placement.Constraints{}.Insert(placement.TopologySpread)},
	{answer.VolumeZone, placement.Constraints{}.Insert(placement.VolumeZone, placement.VolumeNode)},
	{answer.DRAUnallocatable, placement.Constraints{}.Insert(placement.DRADevices)},
}

// amounts are the resources that users look at last.
var amounts = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods}

// waiting finds that the ends of running jobs are enough. Which shortage it is follows from what the gang would fit without.
func waiting(c *stage.Context) *stage.Finding {
	for _, r := range rules {
		if c.Fit(c.View.Cluster(), r.ignore).Fits() {
			return ruled(c, r.code)
		}
	}
	for _, name := range amounts {
		if c.Fit(c.View.Cluster(), placement.Constraints{}.Insert(placement.Resource(name))).Fits() {
			return insufficient(c, name)
		}
	}
	r := c.Lacking()
	if strings.Contains(string(r.Resource), "/") && r.Free >= r.Requested {
		return fragmented(c, r)
	}
	return busy(c, r, answer.Waiting, answer.Nobody)
}

func busy(c *stage.Context, r placement.Room, verdict answer.Verdict, who answer.Who) *stage.Finding {
	f := stage.Found(answer.NodesBusy, "%s", phrase.Busy(r, c.Gang.Meta.Name)).As(verdict, who).DescribeRoom(c.View.Cluster(), r)
	if r.Free > 0 {
		f.Detail("free now: %s", phrase.Gaps(r))
	}
	for _, line := range c.ConsumersOn(r.NodeNames(), r.Resource) {
		f.Detail("%s", line)
	}
	tolerationHints(c, f, r.Role)
	preemption(c, f)
	autoscaler(c, f)
	return f
}

func fragmented(c *stage.Context, r placement.Room) *stage.Finding {
	f := stage.Found(answer.Fragmented, "%s", phrase.Fragmented(r)).DescribeRoom(c.View.Cluster(), r)
	if what := crowded(c, r.Role); what != "" {
		f.Message = fmt.Sprintf("%s keeps it from the room that there is: %d of %d members fit with it, all without; %s are free", what, c.Placed(*c.Placement), c.Gang.Total(), phrase.Amount(r.Resource, r.Free))
	} else if hasAntiAffinity(r.Role.Pod) {
		f.Message = fmt.Sprintf("needs %s, each on a node of its own; %s are free but as %s", phrase.Wants(r), phrase.Amount(r.Resource, r.Free), phrase.Gaps(r))
	}
	f.Detail("%d of %d members fit now", c.Placed(*c.Placement), c.Gang.Total())
	for _, line := range c.ConsumersOn(r.NodeNames(), r.Resource) {
		f.Detail("%s", line)
	}
	autoscaler(c, f)
	return f
}

// crowded names what others have taken of nodes that would have room else: volumes that they can attach, or a port; "" if it is
// not that.
func crowded(c *stage.Context, role placement.Role) string {
	switch {
	case c.Fit(c.View.Cluster(), placement.Constraints{}.Insert(placement.VolumeLimits)).Fits():
		return "the number of volumes that a node can attach"
	case hasHostPort(role.Pod) && c.Fit(c.View.Cluster(), placement.Constraints{}.Insert(placement.HostPort)).Fits():
		return "a host port"
	}
	return ""
}

// insufficient finds that devices are free; something that people do not look at is not.
func insufficient(c *stage.Context, name corev1.ResourceName) *stage.Finding {
	r := shortOf(c, name)
	role := r.Role
	member := phrase.Member(role.Name)
	var short []string
	var total int64
	for _, n := range r.Nodes {
		if n.Free < r.PerMember || r.PerMember <= r.LargestFree {
			short = append(short, n.Node)
		}
		if n.Free == r.LargestFree {
			total = max(total, n.Total)
		}
	}
	text := func(n int64) string { return phrase.Quantity(name, n) }
	f := stage.Found(answer.Insufficient(string(name)), "%s is short, all else would fit: each %s requests %s, and nodes have at most %s of %s left",
		shortName(name), member, text(r.PerMember), text(r.LargestFree), text(total)).
		DescribeRoom(c.View.Cluster(), r).Fact("nodes", short)
	switch {
	case name == corev1.ResourcePods:
		f.Message = fmt.Sprintf("pod slots are used up, all else would fit: %d of %d pods on %s", total-r.LargestFree, total, phrase.Names(short))
	case r.PerMember <= r.LargestFree:
		f.Message = fmt.Sprintf("%s is short, all else would fit: each %s requests %s, the gang %s in all, and nodes have %s of %s left (%s)",
			shortName(name), member, text(r.PerMember), text(r.Requested), text(r.Free), text(r.Total), phrase.Gaps(r))
	case len(short) > 0:
		f.Detail("short on %s", phrase.Names(short))
	}
	if device := c.View.Cluster().RoomFor(c.Request.Gang, role); strings.Contains(string(device.Resource), "/") {
		f.Detail("%s are free there", phrase.Amount(device.Resource, device.Free))
	}
	for _, line := range c.ConsumersOn(short, name) {
		f.Detail("%s", line)
	}
	autoscaler(c, f)
	return f
}

// shortOf is the room for the role that is the matter: the one that requests most of a resource, and of those the one that is
// hardest to place; or one that found no place and would find none alone either.
func shortOf(c *stage.Context, name corev1.ResourceName) placement.Room {
	roles := append([]placement.Role{c.Request.Hardest(c.Placement.Placed)}, c.Request.Roles...)
	slices.SortStableFunc(roles, func(a, b placement.Role) int {
		return cmp.Compare(request.OfResource(b.Pod, name), request.OfResource(a.Pod, name))
	})
	for _, role := range roles {
		if r := c.View.Cluster().Room(c.Request.Gang, role, name); c.Placement.Placed[role.Name] < role.Count && r.PerMember > r.LargestFree {
			return r
		}
	}
	return c.View.Cluster().Room(c.Request.Gang, roles[0], name)
}

func shortName(name corev1.ResourceName) string {
	if name == corev1.ResourcePods {
		return "the number of pods a node"
	}
	return string(name)
}

// preemption adds whether anything that runs could be preempted.
func preemption(c *stage.Context, f *stage.Finding) {
	var mine int32
	for _, r := range c.Request.Roles {
		if r.Pod.Spec.Priority != nil {
			mine = *r.Pod.Spec.Priority
		}
	}
	lower := false
	for _, h := range c.Others() {
		lower = lower || h.Priority() < mine
	}
	if !lower {
		f.Fact("victims", false)
	}
}

// autoscaler adds what the cluster autoscaler reports.
func autoscaler(c *stage.Context, f *stage.Finding) {
	for _, e := range c.View.PodEvents(c.Gang) {
		if refusesToScale(e) {
			f.Detail("%s added no nodes, as it reported %s ago: %s", e.By, phrase.Age(c.View.Age(e.Last)), e.Message).Fact("autoscaler", e.Message)
			groupLimits(c, f)
			return
		}
	}
}

// groupLimits adds how large the autoscaler's node groups may become.
func groupLimits(c *stage.Context, f *stage.Finding) {
	for _, d := range c.View.Snap.Deployments {
		for _, container := range d.Spec.Template.Spec.Containers {
			if !strings.Contains(component.Repository(container.Image), "cluster-autoscaler") {
				continue
			}
			for _, spec := range argv.Values(container, "nodes") {
				if parts := strings.SplitN(spec, ":", 3); len(parts) == 3 {
					f.Detail("node group %s may have %s to %s nodes and has %d", parts[2], parts[0], parts[1], groupSize(c, parts[2]))
				}
			}
		}
	}
}

// groupSize is how many nodes carry the name of a node group as a label.
func groupSize(c *stage.Context, group string) int { return len(groupNodes(c, group)) }

func groupNodes(c *stage.Context, group string) []*corev1.Node {
	var nodes []*corev1.Node
	for _, n := range c.View.Cluster().Nodes() {
		for _, value := range n.Labels {
			if value == group {
				nodes = append(nodes, n)
				break
			}
		}
	}
	return nodes
}
