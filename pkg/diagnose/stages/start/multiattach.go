package start

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// detachTakes is how long the attach controller waits for a kubelet to unmount a volume before it detaches it all the same, from a node that is not healthy.
const detachTakes = 6 * time.Minute

// severalNodes is what members that share a volume need.
const severalNodes = "members on several nodes need a ReadWriteMany volume, or one claim per member"

// multiAttach finds that a volume for one node is needed on two, as the attach controller reports it.
func multiAttach(c *stage.Context, m gang.Member, e view.Event) *stage.Finding {
	for _, claim := range c.View.Snap.Claims {
		if name := volumeIn(&e); name != "" && claim.Namespace == c.Gang.Meta.Namespace && claim.Spec.VolumeName == name {
			return inUse(c, m, claim, e.First)
		}
	}
	return stage.Found(answer.VolumeMultiAttach, "%s", e.Message).Detail(severalNodes).SinceTime(e.First).Run(c.Kubectl("describe", "pod", m.Pod.Name))
}

// away are those of some nodes, a line each, that do not answer, or are gone: what is attached there is not unmounted.
func away(c *stage.Context, nodes []string) (lines []string) {
	for _, name := range nodes {
		switch n := c.Cluster().Node(name); {
		case n == nil:
			lines = append(lines, fmt.Sprintf("%s is not in the cluster", name))
		case !placement.NodeReady(n):
			lines = append(lines, fmt.Sprintf("%s is not ready for %s, so that nothing unmounts the volume there", name, phrase.Age(c.View.Age(placement.ReadyChangedAt(n)))))
		}
	}
	return lines
}

// attachments are the nodes that the volume of a claim is attached to, but that of a member; here reports whether it is attached there.
func attachments(c *stage.Context, m gang.Member, claim *corev1.PersistentVolumeClaim) (nodes []string, here bool) {
	for _, a := range c.View.Snap.VolumeAttachments {
		switch name := a.Spec.Source.PersistentVolumeName; {
		case name == nil || *name != claim.Spec.VolumeName:
		case a.Spec.NodeName != m.Pod.Spec.NodeName:
			nodes = append(nodes, a.Spec.NodeName)
		case a.Status.Attached:
			here = true
		}
	}
	return nodes, here
}

// attachedElsewhere reports whether a volume for one node is attached to another than a member's.
func attachedElsewhere(c *stage.Context, m gang.Member, claim *corev1.PersistentVolumeClaim) bool {
	nodes, here := attachments(c, m, claim)
	return len(nodes) > 0 && !here && !placement.SeveralNodes(claim)
}

// usedBy are the pods that use a claim on another node than a member's.
type usedBy struct {
	// nodes are where the volume is, names those of the pods; each line is about one of these.
	nodes, names, lines []string
	// stuck are pods that should have gone. members are those of the gang that stay, others pods of others that do.
	stuck           []*corev1.Pod
	members, others []string
	// makers are those of whom others are that make another pod for one that is ended, and loose the others of which nobody makes more.
	makers []*view.Consumer
	loose  []string
}

// usersOf finds the pods that use a claim on another node than a member's. One that has ended uses nothing, and one that waits for the volume as the member does has not
// got it.
func usersOf(c *stage.Context, m gang.Member, claim *corev1.PersistentVolumeClaim) usedBy {
	var u usedBy
	u.nodes, _ = attachments(c, m, claim)
	attachedTo := u.nodes
	for _, p := range c.View.Snap.Pods {
		node := p.Spec.NodeName
		has := slices.Contains(attachedTo, node) && !podutil.IsPodTerminal(p) || len(attachedTo) == 0 && p.Status.Phase == corev1.PodRunning
		if !has || p.Namespace != m.Pod.Namespace || node == "" || node == m.Pod.Spec.NodeName || !stage.Mounts(p, claim.Name) {
			continue
		}
		u.nodes, u.names = append(u.nodes, node), append(u.names, p.Name)
		member, h := "", c.View.ConsumerOf(p)
		if i := slices.IndexFunc(c.Gang.Members, func(own gang.Member) bool { return own.Pod == p }); i >= 0 {
			member = c.Gang.Members[i].Name()
		}
		own := member != "" || c.Gang.Owns(p) || h != nil && h == c.View.ConsumerOf(m.Pod)
		if own || h != nil && h.DaemonSet {
			h = nil // of which nothing further is to be reported
		}
		u.add(c, p, member, h)
	}
	slices.Sort(u.nodes)
	u.nodes = slices.Compact(u.nodes)
	return u
}

// add adds a pod, with the name of the member that it is, or else who has it.
func (u *usedBy) add(c *stage.Context, p *corev1.Pod, member string, h *view.Consumer) {
	of, prospects := "", ""
	switch {
	case member != "":
		of = ", " + member + ","
	case c.Gang.Owns(p) && p.DeletionTimestamp != nil:
		of = ", an earlier one of " + c.Gang.Meta.Name + ","
	case c.Gang.Owns(p):
		of = " of " + c.Gang.Meta.Name
	case h != nil && (h.Kind != "Pod" || h.Name != p.Name):
		of = " of " + c.Title(h)
	}
	if h != nil {
		prospects = c.Prospects(h, p)
	}
	switch {
	case c.View.Stuck(p):
		u.stuck = append(u.stuck, p)
		prospects = fmt.Sprintf(", and %s: %s", c.Overdue(p), c.HeldBy(p))
	case p.DeletionTimestamp != nil:
		prospects = cmp.Or(prospects, ", is going")
	case member != "":
		u.members = append(u.members, member)
	default:
		u.others = append(u.others, p.Name)
		switch makes := h != nil && h.Job == nil && !h.Ends && h.Kind != "Pod"; {
		case !makes:
			u.loose = append(u.loose, p.Name)
		case !slices.Contains(u.makers, h):
			u.makers = append(u.makers, h)
		}
		if h != nil && c.EndsBefore(h, p) {
			prospects = cmp.Or(prospects, ", until it ends")
		}
	}
	u.lines = append(u.lines, fmt.Sprintf("pod %s%s has it on %s%s", p.Name, of, p.Spec.NodeName, prospects))
}

// yield adds how members get a volume that pods of others use and keep.
func (u usedBy) yield(c *stage.Context, f *stage.Finding, claim *corev1.PersistentVolumeClaim) *stage.Finding {
	var on []string
	for _, m := range c.Gang.Members {
		if m.Pod != nil && m.Node() != "" && stage.Mounts(m.Pod, claim.Name) && !slices.Contains(on, m.Node()) {
			on = append(on, m.Node())
		}
	}
	if len(on) > 1 {
		return f.Detail("its members on %s mount it, too: %s", phrase.Names(on), severalNodes)
	}
	for _, h := range u.makers[:min(len(u.makers), stage.MaxReasons)] {
		way := c.GiveWay(h)
		f.Detail("use a ReadWriteMany volume, or %s %s, which makes another pod for one that is ended: %s", way.Verb, c.Title(h), way.Command)
	}
	if len(u.loose) > 0 {
		f.Detail("use a ReadWriteMany volume, or end %s", phrase.Names(u.loose))
	}
	return f
}

// inUse finds that a member cannot have the volume of a claim, which is in use on another node, and who has to act.
func inUse(c *stage.Context, m gang.Member, claim *corev1.PersistentVolumeClaim, since time.Time) *stage.Finding {
	u, mode := usersOf(c, m, claim), corev1.ReadWriteOnce
	if len(claim.Spec.AccessModes) > 0 {
		mode = claim.Spec.AccessModes[0]
	}
	f := stage.Found(answer.VolumeMultiAttach, "volume claim %s is %s and in use on %s, so it cannot be mounted on %s", claim.Name, mode,
		cmp.Or(strings.Join(u.nodes, ", "), "another node"), m.Pod.Spec.NodeName).
		Fact("claim", claim.Name).Fact("accessMode", string(mode)).Fact("nodes", u.nodes).Fact("usedBy", u.names).
		SinceTime(since).Run(c.Kubectl("describe", "pod", m.Pod.Name))
	stage.DetailEach(f, u.lines, func(line string) string { return line })
	switch {
	case len(u.stuck) > 0:
		return c.ClearPods(f, u.stuck).As(answer.Blocked, answer.Admin)
	case len(u.members) > 0:
		return f.Detail(severalNodes)
	case len(u.others) > 0:
		return u.yield(c, f, claim)
	case len(u.names) == 0 && len(u.nodes) == 0 && !c.View.Snap.CanList("volumeattachments.storage.k8s.io", ""):
		return f.Detail(severalNodes)
	case len(u.names) == 0 && len(u.nodes) > 0 && c.View.Age(since) > detachTakes:
		f.Detail("no pod uses it there, and it has not been detached for %s: see why at the attach controller and the driver of the volume", phrase.Age(c.View.Age(since)))
		stage.DetailEach(f, away(c, u.nodes), func(line string) string { return line })
		return f.As(answer.Blocked, answer.Admin)
	case len(u.names) == 0 && len(u.nodes) > 0:
		f.Detail("no pod uses it there: it is to be detached, which takes up to %s where the node does not answer", phrase.Age(detachTakes))
	}
	return f.As(answer.Waiting, answer.Nobody)
}
