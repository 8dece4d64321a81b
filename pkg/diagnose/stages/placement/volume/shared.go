package volume

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Exclusive finds that a volume that only one pod may use is in use, or mounted by several members. It reports whether that is all
// that keeps the gang from its place.
func Exclusive(c *stage.Context, out *stage.Result) bool {
	for _, claim := range claimsOf(c, corev1.ReadWriteOncePod) {
		if members := mounting(c, claim); len(members) > 1 {
			out.Add(stage.Found(answer.VolumeMultiAttach, "claim %s is ReadWriteOncePod, and %d members mount it: only one pod may", claim.Name, len(members)).At(answer.StagePlacement).
				See("v1", "PersistentVolumeClaim", claim, ".spec.accessModes").Fact("claim", claim.Name).Fact("members", members))
			return true
		}
	}
	if !c.Fit(c.Cluster(), placement.Constraints{}.Insert(placement.VolumeClaim)).Fits() {
		return false
	}
	f, by := InUse(c)
	if f == nil {
		return false
	}
	out.Add(f.Detail("all else would fit: it starts when %s %s is gone", by.Kind, by))
	return true
}

// InUse finds that another pod uses a claim that only one may, and whose pod that is; nil if none does.
func InUse(c *stage.Context) (*stage.Finding, *view.Consumer) {
	for _, claim := range claimsOf(c, corev1.ReadWriteOncePod) {
		for _, h := range c.Mounting(claim) {
			i := slices.IndexFunc(h.Pods, func(p *corev1.Pod) bool { return p.Namespace == claim.Namespace && stage.Mounts(p, claim.Name) })
			if i < 0 {
				continue
			}
			verdict, who := answer.Waiting, answer.Nobody
			switch {
			case c.View.Stuck(h.Pods[i]):
				verdict, who = answer.Blocked, answer.Admin
			case !c.EndsBefore(h, h.Pods[i]):
				verdict, who = answer.Blocked, answer.User
			}
			f := stage.Found(answer.VolumeMultiAttach, "claim %s is ReadWriteOncePod, and %s uses it on %s%s", claim.Name, h.Pods[i].Name, h.Pods[i].Spec.NodeName, c.Prospects(h, h.Pods[i])).At(answer.StagePlacement).As(verdict, who).
				See("v1", "PersistentVolumeClaim", claim, ".spec.accessModes").Fact("claim", claim.Name).Fact("usedBy", h.String())
			if c.View.Stuck(h.Pods[i]) {
				c.ClearPods(f.Detail("%s", c.HeldBy(h.Pods[i])), h.Pods[i:i+1])
			}
			return f, h
		}
	}
	return nil, nil
}

// claimsOf are the claims that members of the gang mount and that allow nothing but one mode of access.
func claimsOf(c *stage.Context, mode corev1.PersistentVolumeAccessMode) []*corev1.PersistentVolumeClaim {
	return slices.DeleteFunc(mounted(c), func(claim *corev1.PersistentVolumeClaim) bool {
		modes := claim.Spec.AccessModes
		return len(modes) != 1 || modes[0] != mode
	})
}

// mounted are the claims that members of the gang mount, in the order of the cluster's.
func mounted(c *stage.Context) (all []*corev1.PersistentVolumeClaim) {
	seen := map[string]bool{}
	for _, m := range c.Gang.Members {
		pod := podOf(c, m)
		for i := range pod.Spec.Volumes {
			named := pod.Spec.Volumes[i].PersistentVolumeClaim
			if named == nil || seen[named.ClaimName] {
				continue
			}
			seen[named.ClaimName] = true
			if claim := claim(c, named.ClaimName); claim != nil {
				all = append(all, claim)
			}
		}
	}
	order := claimsOfCluster(c).position
	slices.SortFunc(all, func(a, b *corev1.PersistentVolumeClaim) int { return cmp.Compare(order[a], order[b]) })
	return all
}

// podOf is the pod of a member, or what it will be made from.
func podOf(c *stage.Context, m gang.Member) *corev1.Pod {
	if m.Pod != nil {
		return m.Pod
	}
	return &corev1.Pod{Spec: c.Gang.RoleByName(m.Role).Template.Spec}
}

// mounting are the members that mount a claim.
func mounting(c *stage.Context, claim *corev1.PersistentVolumeClaim) []string {
	var all []string
	for _, m := range c.Gang.Members {
		if stage.Mounts(podOf(c, m), claim.Name) {
			all = append(all, m.Name())
		}
	}
	return all
}

// Shared finds that members share a claim that is bound when the first of them has a node. All of them have to go where its volume
// is made then, and do not fit there. It is nil if that is not what keeps them from an empty cluster.
func Shared(c *stage.Context) *stage.Finding {
	ignore := placement.Constraints{}.Insert(placement.VolumeNode)
	if !c.Fit(c.Best(), ignore).Fits() {
		return nil
	}
	for _, claim := range mounted(c) {
		if claim.Spec.VolumeName != "" || len(mounting(c, claim)) < 2 {
			continue
		}
		if finding := provisioning(c, claim); finding != nil {
			return finding
		}
		if desired, class, _ := classOf(c, claim); class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer {
			remedy, reaches := "mount a ReadWriteMany claim, or one per member", "a claim that several nodes may attach (ReadWriteMany) has a volume that all can reach"
			if placement.SeveralNodes(claim) {
				remedy, reaches = "bind it before they start", "one that is bound before has a volume that all can reach"
			}
			return stage.Found(answer.PVCUnbound,
				"PersistentVolumeClaim %s gets its volume where the first of %d members goes that share it, and the others do not fit there: %s", claim.Name, len(mounting(c, claim)), remedy).
				See("v1", "PersistentVolumeClaim", claim, ".status.phase").Fact("claim", claim.Name).Fact("members", mounting(c, claim)).
				Detail("class %s binds when the first pod has a node; %s", desired, reaches)
		}
	}
	return nil
}

// provisioning finds that a volume which several nodes may attach is being made for one of them: the members that share it start when it is there. It is
// nil for a claim that no node was selected for.
func provisioning(c *stage.Context, claim *corev1.PersistentVolumeClaim) *stage.Finding {
	node := placement.SelectedNode(claim)
	if node == "" || !placement.SeveralNodes(claim) {
		return nil
	}
	return stage.Found(answer.PVCUnbound, "PersistentVolumeClaim %s, which %d members share, has no volume yet: it is being provisioned for node %s", claim.Name, len(mounting(c, claim)), node).
		As(answer.Waiting, answer.Nobody).See("v1", "PersistentVolumeClaim", claim, ".status.phase").Fact("claim", claim.Name).Fact("members", mounting(c, claim)).
		Detail("they start when it is there; what the provisioner reports: %s", command.Kubectl(claim.Namespace, "describe", "pvc", claim.Name))
}
