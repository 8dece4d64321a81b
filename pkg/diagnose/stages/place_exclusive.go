package stages

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/placement"
)

// exclusive: a volume that only one pod may use is in use, or is wanted by several members. It reports whether that is all
// that keeps the gang from its place.
func (c *climb) exclusive() bool {
	for _, claim := range c.claimsOf(corev1.ReadWriteOncePod) {
		if members := c.mounting(claim); len(members) > 1 {
			c.add(*found(answer.StagePlacement, answer.VolumeMultiAttach, answer.Blocked, answer.User, "claim %s is ReadWriteOncePod, and %d members mount it: only one pod may", claim.Name, len(members)).
				see("v1", "PersistentVolumeClaim", claim, ".spec.accessModes").fact("claim", claim.Name).fact("members", members))
			return true
		}
	}
	if !c.fitOn(c.w.Cluster(), placement.Constraints{}.Insert(placement.VolumeClaim)).Fits() {
		return false
	}
	for _, claim := range c.claimsOf(corev1.ReadWriteOncePod) {
		for _, h := range c.others() {
			i := slices.IndexFunc(h.Pods, func(p *corev1.Pod) bool { return p.Namespace == claim.Namespace && mounts(p, claim.Name) })
			if i < 0 {
				continue
			}
			verdict, who := answer.Waiting, answer.Nobody
			if !c.endsAlone(h, h.Pods[i]) {
				verdict, who = answer.Blocked, answer.User
			}
			c.add(*found(answer.StagePlacement, answer.VolumeMultiAttach, verdict, who, "claim %s is ReadWriteOncePod, and %s uses it on %s%s", claim.Name, h.Pods[i].Name, h.Pods[i].Spec.NodeName, c.prospects(h)).
				see("v1", "PersistentVolumeClaim", claim, ".spec.accessModes").fact("claim", claim.Name).fact("usedBy", h.String()).
				detail("all else would fit: it starts when %s %s is gone", h.Kind, h))
			return true
		}
	}
	return false
}

// claimsOf are the claims that members of the gang mount and that allow nothing but one mode of access.
func (c *climb) claimsOf(mode corev1.PersistentVolumeAccessMode) []*corev1.PersistentVolumeClaim {
	var all []*corev1.PersistentVolumeClaim
	for _, claim := range c.w.Snap.Claims {
		modes := claim.Spec.AccessModes
		if claim.Namespace == c.g.Meta.Namespace && len(modes) == 1 && modes[0] == mode && len(c.mounting(claim)) > 0 {
			all = append(all, claim)
		}
	}
	return all
}

// mounting are the members that mount a claim.
func (c *climb) mounting(claim *corev1.PersistentVolumeClaim) []string {
	var all []string
	for _, m := range c.g.Members {
		pod := m.Pod
		if pod == nil {
			pod = &corev1.Pod{Spec: c.g.RoleByName(m.Role).Template.Spec}
		}
		if mounts(pod, claim.Name) {
			all = append(all, m.Name())
		}
	}
	return all
}

// apart remarks that members which share a volume for one node would get several: the scheduler does not look at that, and
// all but one of them will hang.
func (c *climb) apart() {
	for _, claim := range c.claimsOf(corev1.ReadWriteOnce) {
		nodes := map[string]bool{}
		for _, a := range c.Place.Placement {
			if m := c.Party.Members[a.Role][a.Member]; slices.Contains(c.mounting(claim), m.Name()) {
				nodes[a.Node] = true
			}
		}
		if len(nodes) > 1 {
			c.Notes = append(c.Notes, fmt.Sprintf("claim %s is ReadWriteOnce, but members that mount it would be on %s: it attaches to one node only",
				claim.Name, strings.Join(sortedKeys(nodes), ", ")))
		}
	}
}

// sharedClaim: members share a claim that is bound when the first of them has a node. All of them have to go where its volume
// is made then, and do not fit there. It is nil if that is not what keeps them from an empty cluster.
func (c *climb) sharedClaim() *Finding {
	ignore := placement.Constraints{}.Insert(placement.VolumeNode)
	if !c.fitOn(c.best(), ignore).Fits() {
		return nil
	}
	for _, claim := range c.w.Snap.Claims {
		if claim.Namespace != c.g.Meta.Namespace || claim.Spec.VolumeName != "" || len(c.mounting(claim)) < 2 {
			continue
		}
		if wanted, class, _ := c.classOf(claim); class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer {
			return found(answer.StagePlacement, answer.PVCUnbound, answer.Blocked, answer.User,
				"PersistentVolumeClaim %s gets its volume where the first of %d members goes that share it, and the others do not fit there: bind it before they start", claim.Name, len(c.mounting(claim))).
				see("v1", "PersistentVolumeClaim", claim, ".status.phase").fact("claim", claim.Name).fact("members", c.mounting(claim)).
				detail("class %s binds when the first pod has a node; a class that binds at once, or a pod that uses the claim before, gives it a volume that all can reach", wanted)
		}
	}
	return nil
}
