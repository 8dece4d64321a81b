package autoscaler

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/node"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Departing adds to the finding that the cluster is too small that nodes are being deleted with which it would not be, what holds that up, and whether others may come for them.
func Departing(c *stage.Context, f *stage.Finding, role placement.Role) {
	nodes := leavingNodes(c)
	if len(nodes) == 0 {
		return
	}
	names, about := node.Names(nodes), ""
	if n := node.Offered(c.Cluster(), names, podrequest.Device(podrequest.Of(role.Pod))); n > 0 {
		about = fmt.Sprintf(" (%s)", phrase.Amount(podrequest.Device(podrequest.Of(role.Pod)), n))
	}
	oldest := slices.MinFunc(nodes, func(a, b *corev1.Node) int { return a.DeletionTimestamp.Compare(b.DeletionTimestamp.Time) })
	f.Message = fmt.Sprintf("%s%s %s being deleted, for %s, and without %s %s", phrase.Names(names), about, phrase.Verb(len(names), "is", "are"), phrase.Age(c.View.Age(oldest.DeletionTimestamp.Time)),
		phrase.Verb(len(names), "it", "them"), f.Message)
	f.Fact("deletedNodes", names).See("v1", "Node", oldest, ".metadata.deletionTimestamp").Run(command.Kubectl("", "get", "pods", "-A", "-o", "wide", "--field-selector", "spec.nodeName="+oldest.Name))
	var pods []*corev1.Pod
	pools := sets.New[string]()
	for _, n := range nodes {
		pods = append(pods, slices.DeleteFunc(slices.Clone(c.View.Cluster().PodsOn(n.Name)), placement.DaemonSetPod)...)
		if pool := c.View.NodePoolOf(n); pool != nil {
			pools.Insert(pool.GetName())
		}
		for _, e := range c.View.EventsAbout(schema.GroupKind{Kind: "Node"}, n) {
			if e.ByKarpenter() && e.Warning {
				f.Detail("%s reported of %s %s ago: %s", e.By, n.Name, phrase.Age(c.View.Age(e.Last)), e.Message)
				break
			}
		}
	}
	if guarded := c.Guarded(pods); guarded != "" {
		f.Detail("what is still there holds that up: %s", guarded)
	}
	if len(pools) > 0 {
		f.As(answer.Blocked, answer.Admin).Never = false
		f.Detail("a node that is being deleted does not come back: Karpenter adds others of NodePool %s where members need them", phrase.Names(sets.List(pools)))
	}
}

// anyLeaving reports whether any node is being deleted.
func anyLeaving(v *view.View) bool {
	type anyLeaving struct{}
	return view.Once(v, anyLeaving{}, func() bool {
		return slices.ContainsFunc(v.Snap.Nodes, func(n *corev1.Node) bool { return n.DeletionTimestamp != nil })
	})
}

// leavingNodes are the nodes that are being deleted and that a gang may use, if it would fit with all of them on the cluster at its best; none if it would not.
func leavingNodes(c *stage.Context) []*corev1.Node {
	if !anyLeaving(c.View) {
		return nil
	}
	deleted := slices.DeleteFunc(slices.Clone(c.Best().Nodes()), func(n *corev1.Node) bool { return n.DeletionTimestamp == nil })
	stay := func() *placement.Cluster {
		return c.Best().MapNodes(func(n *corev1.Node) *corev1.Node {
			if n.DeletionTimestamp == nil {
				return n
			}
			n = n.DeepCopy()
			n.DeletionTimestamp = nil
			return n
		})
	}
	var with *placement.Cluster
	if c.View.IsCommon(c.Best()) {
		with = c.View.Derived(c.Best(), "with the nodes that are being deleted", stay)
	} else {
		with = stay()
	}
	if !c.Fit(with, nil).Fits() {
		return nil
	}
	may := sets.New(node.Usable(c, with)...)
	return slices.DeleteFunc(deleted, func(n *corev1.Node) bool { return !may.Has(n.Name) })
}
