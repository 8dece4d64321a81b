package volume

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	storage "k8s.io/component-helpers/storage/volume"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/placement"
)

// provision is a claim whose volume its provisioner is to make.
type provision struct {
	c     *stage.Context
	role  placement.Role
	claim *corev1.PersistentVolumeClaim
	class *storagev1.StorageClass
	// by is the provisioner, node the node that the scheduler has given the claim's first pod to, for which the volume is made; empty for none.
	by, node string
}

// unserved finds that a claim waits for its provisioner: that is not there, or does not run; or it is to make the volume for a node that is gone; or it is at it. A scheduler that has
// given the claim to a node has chosen the place for its pod, and waits for nothing else. It is nil for a claim that waits for something else, or for nothing yet.
func unserved(c *stage.Context, role placement.Role, claim *corev1.PersistentVolumeClaim) *stage.Finding {
	_, class, _ := classOf(c, claim)
	if !unprovisioned(claim) || class == nil || class.Provisioner == "" || class.Provisioner == noProvisioner {
		return nil
	}
	p := provision{c, role, claim, class, provisionerOf(claim, class), ""}
	if p.first() {
		if p.node = placement.SelectedNode(claim); p.node == "" && !c.Placement.Fits() { // it is not needed yet
			return nil
		}
	}
	deployments := component.Provisioners(c.View, p.by)
	switch {
	case len(deployments) > 0 && component.AllDown(deployments):
		return p.down(deployments[0])
	case len(deployments) == 0 && p.missing():
		return p.notInstalled()
	case p.node != "" && c.Cluster().Node(p.node) == nil:
		return p.nodeGone()
	case p.node != "" && c.Placement.Fits() && recentFailure(c, claim) == nil:
		return p.running(deployments)
	}
	return nil
}

// first reports whether the volume is made only when the first pod that mounts it has a node.
func (p provision) first() bool {
	return p.class.VolumeBindingMode != nil && *p.class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// provisionerOf is what makes the volume of a claim of a class. Of one that is built in it is the CSI driver that does that in its place, which the claim names.
func provisionerOf(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) string {
	by := claim.Annotations[storage.AnnStorageProvisioner]
	if strings.HasPrefix(class.Provisioner, "kubernetes.io/") && len(validation.IsDNS1123Subdomain(by)) == 0 {
		return by
	}
	return class.Provisioner
}

// missing reports whether no CSI driver of the name of the provisioner is in the cluster, where others are. One with a domain before its name is no CSI driver.
func (p provision) missing() bool {
	s := p.c.View.Snap
	return len(s.CSIDrivers) > 0 && s.CanList("csidrivers.storage.k8s.io", "") && strings.Contains(p.by, ".") && !strings.Contains(p.by, "/") &&
		!slices.ContainsFunc(s.CSIDrivers, func(d *storagev1.CSIDriver) bool { return d.Name == p.by }) &&
		!slices.ContainsFunc(s.CSINodes, func(n *storagev1.CSINode) bool {
			return slices.ContainsFunc(n.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == p.by })
		}) && !slices.ContainsFunc(eventsOf(p.c, p.claim), func(e view.Event) bool { return strings.HasPrefix(e.By, p.by) })
}

// waits begins the sentence: which volume is waited for, from whom, for how long.
func (p provision) waits() string {
	text := fmt.Sprintf("PersistentVolumeClaim %s waits for %s to make its volume", p.claim.Name, p.by)
	if p.node != "" {
		text += " for node " + p.node
	}
	if since := p.since(); !since.IsZero() {
		text += ", for " + phrase.Age(p.c.View.Age(since))
	}
	return text
}

// since is from when on the provisioner is waited for: from the claim on, or, where that waits for a pod, by the event that reports it, or else from when on there are both. It is zero for a claim
// that does not wait yet.
func (p provision) since() time.Time {
	switch e := stage.LatestEvent(eventsOf(p.c, p.claim), "ExternalProvisioning"); {
	case p.claim.Status.Phase == "" || p.node == "" && p.first():
		return time.Time{}
	case !p.first():
		return p.claim.CreationTimestamp.Time
	case e != nil:
		return e.First
	}
	first := time.Time{}
	for _, m := range p.c.Gang.Members {
		if m.Pod != nil && stage.Mounts(m.Pod, p.claim.Name) && (first.IsZero() || m.Pod.CreationTimestamp.Time.Before(first)) {
			first = m.Pod.CreationTimestamp.Time
		}
	}
	return view.Later(p.claim.CreationTimestamp.Time, first)
}

func (p provision) finding(problem string) *stage.Finding {
	f := about(p.c, p.role, p.claim.Name, p.claim, problem).Fact("provisioner", p.by)
	if p.node != "" {
		f.Fact("node", p.node)
	}
	if since := p.since(); !since.IsZero() {
		f.SinceTime(since)
	}
	return f
}

// bound is the cluster in which the volume was made after all.
func (p provision) bound(s *snapshot.Snapshot) *snapshot.Snapshot {
	return bindClaim(s, p.claim, p.class.Name)
}

// down finds that the provisioner does not run.
func (p provision) down(d *appsv1.Deployment) *stage.Finding {
	f := p.finding(fmt.Sprintf("%s: %s, which does that, has %d of %d pods ready", p.waits(), p.c.TitleOf("Deployment", d), d.Status.ReadyReplicas, component.Replicas(d))).As(answer.Blocked, answer.Admin).
		See("apps/v1", "Deployment", d, ".status.readyReplicas").Fact("deployment", p.c.NameOf("Deployment", d))
	stage.DetailEach(f, component.Problems(p.c, d), func(line string) string { return line })
	start := component.Start(p.c, d)
	up := start.Apply
	start.Apply = func(s *snapshot.Snapshot) *snapshot.Snapshot { return p.bound(up(s)) }
	return f.Fix(start)
}

// notInstalled finds that the cluster has no provisioner of the name.
func (p provision) notInstalled() *stage.Finding {
	var have []string
	for _, d := range p.c.View.Snap.CSIDrivers {
		have = append(have, d.Name)
	}
	slices.Sort(have)
	f := p.finding(fmt.Sprintf("%s, and no CSI driver of that name is in the cluster; there are: %s", p.waits(), phrase.Names(have))).As(answer.Blocked, answer.Admin).
		See("storage.k8s.io/v1", "StorageClass", p.class, ".provisioner").Fact("have", have[:min(len(have), stage.MaxLines)])
	return f.Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.Admin, Text: fmt.Sprintf("install CSI driver %s, or give StorageClass %s one that is there", p.by, p.class.Name), Change: map[string]any{"provisioner": p.by}},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			n := p.bound(s)
			n.CSIDrivers = append(n.CSIDrivers, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: p.by}})
			return n
		},
	})
}

// nodeGone finds that the volume is to be made for a node that there is no more. Newer provisioners take the node from the claim themselves.
func (p provision) nodeGone() *stage.Finding {
	f := p.finding(fmt.Sprintf("PersistentVolumeClaim %s is to get its volume for node %s, which is not in the cluster: its pods go nowhere else as long as it names that", p.claim.Name, p.node))
	f.Evidence[0].Path = ".metadata.annotations"
	return f.Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: fmt.Sprintf("take node %s from claim %s", p.node, p.claim.Name), Cost: "the claim holds no data yet", Change: map[string]any{"claim": p.claim.Name},
			Command: p.c.Kubectl("annotate", "pvc", p.claim.Name, storage.AnnSelectedNode+"-")},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			n := whatif.WithoutEvents(s, func(e *corev1.Event) bool {
				return e.Namespace == p.claim.Namespace && e.InvolvedObject.Kind == "PersistentVolumeClaim" && e.InvolvedObject.Name == p.claim.Name
			})
			for i, other := range n.Claims {
				if other.Namespace == p.claim.Namespace && other.Name == p.claim.Name {
					n.Claims[i] = other.DeepCopy()
					delete(n.Claims[i].Annotations, storage.AnnSelectedNode)
				}
			}
			return n
		},
	})
}

// running finds that the members have their places, and that one of them waits for its volume.
func (p provision) running(deployments []*appsv1.Deployment) *stage.Finding {
	f := p.finding(p.waits()+": the members have a place once it is there").As(answer.Waiting, answer.Nobody)
	for _, d := range deployments[:min(len(deployments), 1)] {
		f.Detail("%s, which does that, has %d of %d pods ready", p.c.TitleOf("Deployment", d), d.Status.ReadyReplicas, component.Replicas(d)).Run(component.Log(p.c.View, "deployment", d, d.Spec.Selector))
	}
	if why := waitingFor(p.c, p.claim); why != "" {
		f.Detail("the scheduler reports: %s", why)
	}
	return f
}

// waitingFor is what the scheduler has written into a member that mounts a claim; empty if it has written nothing.
func waitingFor(c *stage.Context, claim *corev1.PersistentVolumeClaim) string {
	for _, m := range c.Gang.Members {
		if m.Pod == nil || !stage.Mounts(m.Pod, claim.Name) {
			continue
		}
		for _, cond := range m.Pod.Status.Conditions {
			if cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse && strings.Contains(cond.Message, "binding volumes") {
				return cmp.Or(phrase.Shorten(cond.Message, maxReport), cond.Reason)
			}
		}
	}
	return ""
}
