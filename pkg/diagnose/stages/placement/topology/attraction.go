package topology

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement"
)

// attraction is the clause for a role that has to be near pods of others: it has to be where pods with app=cache are, and where that is. It is empty for
// a role that is only to be with its own kind.
func attraction(c *stage.Context, role placement.Role) string {
	if c.Request.Topology.Required != "" {
		return ""
	}
	for _, a := range stage.Attractions(role.Pod) {
		what := fmt.Sprintf("it has to be where pods with %s are (same %s)", a.Selector, a.TopologyKey)
		if at := a.Domains(c.Cluster()); len(at) > 0 {
			return what + ", which is " + phrase.Or(at)
		}
		return what + ", and there is no such pod on a node" + inTurn(c, a, role.Pod)
	}
	return ""
}

// inTurn names a pod without a node that a member has to be near, and that has to be near the member: neither can go first. It is empty if there is none.
func inTurn(c *stage.Context, a stage.Attraction, member *corev1.Pod) string {
	type attractedPods struct{}
	waiting := view.Once(c.View, attractedPods{}, func() (all []*corev1.Pod) {
		for _, p := range c.View.Snap.Pods {
			if p.Spec.NodeName == "" && len(stage.Attractions(p)) > 0 {
				all = append(all, p)
			}
		}
		return all
	})
	own := c.Gang.ExistingPods()
	for _, p := range waiting {
		if a.To(p) && !slices.Contains(own, p) && slices.ContainsFunc(stage.Attractions(p), func(b stage.Attraction) bool { return b.To(member) }) {
			return fmt.Sprintf(": %s, which is such a pod, has to be where this one is, so that neither can go first", c.Reader.Name(audience.New("Pod", p.Namespace, p.Name)))
		}
	}
	return ""
}
