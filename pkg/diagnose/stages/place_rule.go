package stages

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// ruled: there is room, but a rule about where members may be together, or where their data is, keeps them from it.
func (c *climb) ruled(code answer.Code) *Finding {
	r := c.lacking()
	role := r.Role
	f := found(answer.StagePlacement, code, answer.Waiting, answer.Nobody, "").describeRoom(c.w.Cluster(), r)
	switch code {
	case answer.TopologyFragmented:
		c.rack(f, role)
	case answer.TopologySpread:
		c.spread(f, role)
	case answer.VolumeZone:
		c.volumeZone(f, role)
	default:
		f.Message = fmt.Sprintf("the devices that its resource claims ask for are allocated to others; %d of %d members could have theirs", c.placedOf(*c.Place), c.g.Total())
	}
	lines := c.claimHolders()
	if code != answer.DRAUnallocatable {
		lines = c.holdersOn(c.relevant(code, r), r.Resource)
	}
	for _, line := range lines {
		f.detail("%s", line)
	}
	return f
}

// relevant are the nodes on which somebody stands in the way.
func (c *climb) relevant(code answer.Code, r placement.Room) []string {
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
func (c *climb) topologyKey(role placement.Role) string {
	if c.Party.TopologyKey != "" {
		return c.Party.TopologyKey
	}
	if hasAffinity(role.Pod) {
		return role.Pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey
	}
	return ""
}

// rack: enough nodes are free, but not in one domain.
func (c *climb) rack(f *Finding, role placement.Role) {
	key := c.topologyKey(role)
	slots := map[string]int64{}
	var free int64
	for _, s := range placement.Slots(c.w.Cluster(), withoutAffinity(role.Pod), role.Count, placement.Options{}) {
		slots[c.w.Cluster().Node(s.Node).Labels[key]] += s.Slots
		free += s.Slots
	}
	best, most := "", int64(-1)
	var parts []string
	for _, domain := range sortedKeys(slots) {
		if slots[domain] > most {
			best, most = domain, slots[domain]
		}
		parts = append(parts, fmt.Sprintf("%s %d", domain, slots[domain]))
	}
	need := c.Party.MinMember
	f.Message = fmt.Sprintf("all members must share one value of %s: the best, %s, has room for %d/%d, while %d would fit in all", key, best, most, need, free)
	f.detail("places by %s: %s", key, phrase.Names(parts)).fact("topologyKey", key).fact("bestDomain", best).fact("bestFits", most).fact("fitsAnywhere", free)
}

// withoutAffinity is the pod without rules about other pods.
func withoutAffinity(pod *corev1.Pod) *corev1.Pod {
	p := pod.DeepCopy()
	if p.Spec.Affinity != nil {
		p.Spec.Affinity.PodAffinity = nil
	}
	return p
}

// spread: a topology spread constraint keeps members from the room that there is.
func (c *climb) spread(f *Finding, role placement.Role) {
	f.Message = "a topology spread constraint keeps it from the room that there is"
	for _, s := range role.Pod.Spec.TopologySpreadConstraints {
		if s.WhenUnsatisfiable == corev1.DoNotSchedule {
			f.Message = fmt.Sprintf("the spread over %s (maxSkew %d) keeps it from the room that there is: %d of %d members fit with it, all without", s.TopologyKey, s.MaxSkew, c.placedOf(*c.Place), c.g.Total())
			f.fact("topologyKey", s.TopologyKey).fact("maxSkew", s.MaxSkew)
			break
		}
	}
}

// volumeZone: the data is in one place, the room in another.
func (c *climb) volumeZone(f *Finding, role placement.Role) {
	claimName, where, key := "a volume", "elsewhere", corev1.LabelTopologyZone
	if claim, k, values := c.boundPlace(role); claim != nil {
		claimName, key, where = claim.Name, k, phrase.Or(values)
		f.fact("claim", claim.Name).fact("volume", claim.Spec.VolumeName).fact("zone", values).
			see("v1", "PersistentVolumeClaim", claim, ".spec.volumeName")
	}
	device := request.Device(placement.Request(role.Pod))
	free := map[string]int64{}
	m := c.Matrices[role.Name]
	for _, node := range slices.Concat(m.OnlyBlocker(placement.VolumeZone), m.OnlyBlocker(placement.VolumeNode), m.Relaxed(placement.VolumeZone, placement.VolumeNode)) {
		free[c.w.Cluster().Node(node).Labels[key]] += placement.Amount(device, c.w.Cluster().Free(node)[device])
	}
	var parts []string
	for _, zone := range sortedKeys(free) {
		parts = append(parts, fmt.Sprintf("%s in %s", phrase.Amount(device, free[zone]), zone))
	}
	f.Message = fmt.Sprintf("the volume of claim %s is in %s, and what is free is elsewhere: %s", claimName, where, phrase.Names(parts))
}

// boundPlace is the first claim of a role whose volume is somewhere, and the label and its values by which that is told.
func (c *climb) boundPlace(role placement.Role) (*corev1.PersistentVolumeClaim, string, []string) {
	for _, v := range role.Pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		if claim := c.claim(v.PersistentVolumeClaim.ClaimName); claim != nil {
			if key, values := c.volumePlace(claim.Spec.VolumeName); len(values) > 0 {
				return claim, key, values
			}
		}
	}
	return nil, "", nil
}

// volumePlace is the label and its values that a volume asks of a node.
func (c *climb) volumePlace(name string) (string, []string) {
	for _, v := range c.w.Snap.Volumes {
		if v.Name != name {
			continue
		}
		if v.Spec.NodeAffinity != nil && v.Spec.NodeAffinity.Required != nil {
			for _, term := range v.Spec.NodeAffinity.Required.NodeSelectorTerms {
				for _, e := range term.MatchExpressions {
					return e.Key, e.Values
				}
			}
		}
		for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone} {
			if zone := v.Labels[key]; zone != "" {
				return key, []string{zone}
			}
		}
	}
	return "", nil
}
