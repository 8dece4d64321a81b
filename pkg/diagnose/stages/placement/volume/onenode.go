package volume

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement"
)

// mostJudged is of how many claims that is found out: users decide how many their pods mount.
const mostJudged = 8

// OneNode finds that a volume which attaches to one node only is needed on another: by members that have no room on one node together, or that have none where
// another pod uses it. No scheduler looks at that: it places them, and those on other nodes hang. found is a placement of the gang on a cluster: on the one as it is,
// it notes where the scheduler may go wrong.
func OneNode(c *stage.Context, out *stage.Result, cluster *placement.Cluster, found placement.Result) {
	asItIs, judged := cluster == c.Cluster(), 0
	for _, claim := range claimsOf(c, corev1.ReadWriteOnce) {
		v := oneNodeVolume{c, claim, nil, nil}
		v.user, v.consumer = userOf(c, claim)
		nodes := v.nodes(found)
		switch {
		case !found.Fits() || len(nodes) == 0 || len(nodes) == 1 && (v.user == nil || nodes[0] == v.user.Spec.NodeName) || !attaches(c, claim):
			continue
		case out.DeniedAny(c, "", "persistentvolumes", "csidrivers"):
			if asItIs && len(nodes) > 1 {
				out.Notes = append(out.Notes, fmt.Sprintf("claim %s is ReadWriteOnce, but members that mount it would be on %s: it attaches to one node only", claim.Name, strings.Join(nodes, ", ")))
			}
			continue
		}
		f, note := v.judge(cluster, nodes)
		if judged++; f != nil {
			out.Add(f)
		} else if asItIs {
			out.Notes = append(out.Notes, note)
		}
		if f != nil || judged == mostJudged { // each takes a search or two, and the members are the same
			return
		}
	}
}

// oneNodeVolume is a claim of a volume that attaches to one node, and the pod that has it attached, if one does: of the gang if consumer is nil.
type oneNodeVolume struct {
	c        *stage.Context
	claim    *corev1.PersistentVolumeClaim
	user     *corev1.Pod
	consumer *view.Consumer
}

// userOf is a pod on a node that mounts a claim, and what it is of: of the gang itself, which keeps it, before others.
func userOf(c *stage.Context, claim *corev1.PersistentVolumeClaim) (*corev1.Pod, *view.Consumer) {
	uses := func(p *corev1.Pod) bool {
		return p != nil && placement.Holds(p) && p.Namespace == claim.Namespace && stage.Mounts(p, claim.Name)
	}
	for _, m := range c.Gang.Members {
		if uses(m.Pod) && slices.Contains(c.Request.Bound, m.Pod.UID) {
			return m.Pod, nil
		}
	}
	for _, h := range c.Mounting(claim) {
		if i := slices.IndexFunc(h.Pods, uses); i >= 0 {
			return h.Pods[i], h
		}
	}
	return nil, nil
}

// nodes are those on which a placement has members that mount the claim.
func (v oneNodeVolume) nodes(found placement.Result) []string {
	members, nodes := mounting(v.c, v.claim), map[string]bool{}
	for _, a := range found.Placement {
		if m := v.c.Request.Member(a.Role, a.Member); slices.Contains(members, m.Name()) {
			nodes[a.Node] = true
		}
	}
	return slices.Sorted(maps.Keys(nodes))
}

// judge finds that there is no node with room for the members that mount the claim and with the pod that uses it. Else it notes that the scheduler does not look
// for that node.
func (v oneNodeVolume) judge(cluster *placement.Cluster, nodes []string) (f *stage.Finding, note string) {
	if len(nodes) > 1 && v.search(cluster, sharingNode).Impossible() {
		f = stage.Found(answer.VolumeMultiAttach, "claim %s is ReadWriteOnce, which one node attaches, and no node has room for all %d members that mount it", v.claim.Name, len(mounting(v.c, v.claim)))
		return v.finding(f, nodes), ""
	}
	if v.user == nil {
		return nil, fmt.Sprintf("claim %s is ReadWriteOnce, and the scheduler does not keep the members that mount it on one node: on %s, all but those on one hang", v.claim.Name, strings.Join(nodes, ", "))
	}
	on := v.user.Spec.NodeName
	if !v.search(cluster, func(pod *corev1.Pod) { pod.Spec.NodeName = on }).Impossible() {
		return nil, fmt.Sprintf("claim %s is ReadWriteOnce, and pod %s uses it on %s: members that mount it start only there, and the scheduler does not look at that", v.claim.Name, v.user.Name, on)
	}
	if v.consumer == nil {
		f = stage.Found(answer.VolumeMultiAttach, "claim %s is ReadWriteOnce, and member %s uses it on %s, where the others that mount it have no room", v.claim.Name, v.user.Name, on)
		return v.finding(f, nodes), ""
	}
	f = stage.Found(answer.VolumeMultiAttach, "claim %s is ReadWriteOnce, and %s uses it on %s, where the members that mount it have no room%s", v.claim.Name, v.user.Name, on, v.c.Prospects(v.consumer, v.user))
	if v.c.EndsBefore(v.consumer, v.user) {
		f = f.As(answer.Waiting, answer.Nobody)
	}
	return v.finding(f.Fact("usedBy", v.consumer.String()).Fact("usedOn", on), nodes), ""
}

func (v oneNodeVolume) finding(f *stage.Finding, nodes []string) *stage.Finding {
	if f.Verdict != answer.Waiting {
		f = f.As(answer.Blocked, answer.User)
	}
	return f.At(answer.StagePlacement).See("v1", "PersistentVolumeClaim", v.claim, ".spec.accessModes").Fact("claim", v.claim.Name).Fact("nodes", nodes).
		Detail("the scheduler does not look at that: it would place them on %s, where they hang (Multi-Attach)", strings.Join(nodes, ", ")).
		Detail("members on several nodes need a ReadWriteMany volume, or one claim per member")
}

// search looks for a placement of the gang in which the members that mount the claim are tied to a node.
func (v oneNodeVolume) search(cluster *placement.Cluster, tie func(*corev1.Pod)) placement.Result {
	g := v.c.Request.Gang
	g.Roles = slices.Clone(g.Roles)
	for i := range g.Roles {
		if r := &g.Roles[i]; stage.Mounts(r.Pod, v.claim.Name) {
			r.Pod = r.Pod.DeepCopy()
			tie(r.Pod)
		}
	}
	return v.c.Search(cluster, g, nil)
}

// sharingNode gives a pod required affinity to pods to which it was given, on one node.
func sharingNode(pod *corev1.Pod) {
	const label = "gangctl.dev/attaches-one-volume"
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[label] = "true"
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if pod.Spec.Affinity.PodAffinity == nil {
		pod.Spec.Affinity.PodAffinity = &corev1.PodAffinity{}
	}
	a := pod.Spec.Affinity.PodAffinity
	a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, corev1.PodAffinityTerm{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "true"}},
	})
}

// attaches reports whether the volume of a claim is attached to nodes, so that a second one is refused, as far as can be seen: most file systems of a network are
// mounted without. It is false for a claim without a volume: the search keeps the members that share it on one node.
func attaches(c *stage.Context, claim *corev1.PersistentVolumeClaim) bool {
	if !c.View.Snap.CanList("persistentvolumes", "") {
		return claim.Spec.VolumeName != ""
	}
	i := slices.IndexFunc(c.View.Snap.Volumes, func(pv *corev1.PersistentVolume) bool { return pv.Name == claim.Spec.VolumeName })
	if i < 0 {
		return false
	}
	source := c.View.Snap.Volumes[i].Spec.PersistentVolumeSource
	if source.CSI == nil {
		return source.AWSElasticBlockStore != nil || source.GCEPersistentDisk != nil || source.VsphereVolume != nil || source.ISCSI != nil || source.FC != nil || source.RBD != nil
	}
	for _, d := range c.View.Snap.CSIDrivers {
		if d.Name == source.CSI.Driver {
			return d.Spec.AttachRequired == nil || *d.Spec.AttachRequired
		}
	}
	return true // as the attach/detach controller has it for a driver without an object
}
