package stage

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
)

// HeldBy is why a pod that is stuck in its deletion is still there: who has to act.
func (c *Context) HeldBy(p *corev1.Pod) string {
	if len(p.Finalizers) > 0 {
		return "it is held by finalizer " + strings.Join(p.Finalizers, ", ")
	}
	if n := c.View.Cluster().Node(p.Spec.NodeName); n == nil || !view.NodeReady(n) {
		return "only the kubelet of its node can confirm that it has ended"
	}
	return "its kubelet has not ended it"
}
