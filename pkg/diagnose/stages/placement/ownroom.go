package placement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
	"github.com/gangctl/gangctl/pkg/placement"
)

// ownRoom adds to what keeps a gang from its place that what it is a part of has the room: other replicas of its LeaderWorkerSet, or another RayCluster of its RayService. Where these go
// only when the gang is ready, it waits for itself.
func ownRoom(c *stage.Context, out *stage.Result, from int) {
	if len(out.Findings) == from {
		return
	}
	f := &out.Findings[from]
	switch c.Gang.Kind.GroupKind() {
	case leaderworkerset.Reader().GroupKind:
		otherReplicas(c, f)
	case ray.ClusterReader().GroupKind:
		otherClusters(c, f)
	}
}

// enough reports whether there is room once some pods are gone.
func enough(c *stage.Context, pods []*corev1.Pod) bool {
	return len(pods) > 0 && c.Fit(c.View.Without(pods), nil).Fits()
}

// usingNodes are those of some pods that use nodes, and would go.
func usingNodes(c *stage.Context, pods []*corev1.Pod) (using []*corev1.Pod) {
	for _, p := range pods {
		if placement.Holds(p) && !c.View.Stuck(p) {
			using = append(using, p)
		}
	}
	return using
}

// otherReplicas adds the other replicas of a LeaderWorkerSet that have the room for one of it. While it updates them, it may add one before it replaces those of the earlier template.
func otherReplicas(c *stage.Context, f *stage.Finding) {
	g := c.Gang
	whole := c.View.Lookup(g.Kind.GroupKind(), g.Meta.Namespace, g.Meta.Name)
	if g.Replica == nil || whole == nil {
		return
	}
	var names []string
	var all, last []*corev1.Pod
	for _, one := range c.View.Gang(whole).Each {
		if *one.Replica == *g.Replica {
			continue
		}
		if pods := usingNodes(c, one.ExistingPods()); len(pods) > 0 {
			names, all, last = append(names, one.PortionTitle()), append(all, pods...), pods
		}
	}
	if !enough(c, all) {
		return
	}
	set := g.Kind.Kind + " " + g.Meta.Name
	f.Fact("ownRoom", names)
	if !leaderworkerset.Surges(whole, *g.Replica) {
		f.Detail("%s of the same %s %s room that it could use", phrase.Names(names), set, phrase.Verb(len(names), "has", "have"))
		return
	}
	f.Message = fmt.Sprintf("the update of %s waits for itself: it adds %s first (maxSurge), and %s %s replaced only when that is Ready; %s", set, g.PortionTitle(), phrase.Names(names), phrase.Verb(len(names), "is", "are"), f.Message)
	patch := map[string]any{"spec": map[string]any{"rolloutStrategy": map[string]any{"rollingUpdateConfiguration": map[string]any{"maxSurge": 0, "maxUnavailable": 1}}}}
	waitsForItself(f, stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: "have " + set + " end a replica before it makes the next (maxSurge 0, maxUnavailable 1)", Cost: "one replica less serves until the next is Ready",
			Change: map[string]any{"maxSurge": 0, "maxUnavailable": 1}, Command: command.MergePatch(g.Meta.Namespace, "leaderworkerset", g.Meta.Name, patch)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Gone(s, last) },
	})
}

// waitsForItself makes a finding one that the user of the gang removes, unless it passes by itself.
func waitsForItself(f *stage.Finding, fix stage.Fix) {
	if f.Verdict == answer.Blocked {
		f.As(answer.Blocked, answer.User).Never = false
	}
	f.Fix(fix)
}

// otherClusters adds the other RayClusters of a RayService that have the room for one of it. When its spec changes, it makes another one, and deletes the earlier one only when that is ready.
func otherClusters(c *stage.Context, f *stage.Finding) {
	g := c.Gang
	service := serviceOf(&g.Meta)
	if service == nil {
		return
	}
	for _, job := range c.View.Jobs() {
		if of := serviceOf(&job.Meta); job.Meta.UID == g.Meta.UID || job.Meta.Namespace != g.Meta.Namespace || of == nil || of.UID != service.UID {
			continue
		}
		pods := usingNodes(c, c.View.Gang(job).ExistingPods())
		if !enough(c, pods) {
			continue
		}
		f.Fact("ownRoom", []string{job.Meta.Name})
		if !job.Meta.CreationTimestamp.Before(&g.Meta.CreationTimestamp) {
			f.Detail("RayCluster %s of the same RayService %s has room that it could use", job.Meta.Name, service.Name)
			return
		}
		f.Message = fmt.Sprintf("the update of RayService %s waits for itself: RayCluster %s is deleted only when %s is ready; %s", service.Name, job.Meta.Name, g.Meta.Name, f.Message)
		f.Partner = c.View.ConsumerOf(pods[0])
		f.Fixes = withoutEviction(f.Fixes, f.Partner)
		f.Detail("with upgradeStrategy.type None a RayService makes no other RayCluster when its spec changes")
		waitsForItself(f, stage.Fix{
			Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: fmt.Sprintf("delete RayCluster %s, which %s replaces", job.Meta.Name, g.Meta.Name), Cost: "RayService " + service.Name + " serves no more until " + g.Meta.Name + " is ready",
				Change: map[string]any{"rayCluster": job.Meta.Name}, Command: command.Delete(job)},
			Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Gone(s, pods, gang.IdentityOf(&job.Meta)) },
		})
		return
	}
}

// serviceOf is the RayService that has made a RayCluster; nil for one of another origin.
func serviceOf(meta *metav1.ObjectMeta) *metav1.OwnerReference {
	if ref := metav1.GetControllerOfNoCopy(meta); ref != nil && ref.Kind == ray.ServiceKind {
		return ref
	}
	return nil
}

// withoutEviction leaves out of some fixes those that take the room of one consumer alone.
func withoutEviction(fixes []stage.Fix, h *view.Consumer) (left []stage.Fix) {
	for _, fix := range fixes {
		if len(fix.Evicts) != 1 || fix.Evicts[0] != h {
			left = append(left, fix)
		}
	}
	return left
}
