package stage

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Deletion is how a pod goes that is being deleted, and until when it may take.
func (c *Context) Deletion(p *corev1.Pod) string {
	how := "it is being deleted"
	if by := gang.Disruption(p); by != nil {
		how = strings.TrimSpace(by.Reason + " " + by.Message)
	}
	if end := p.DeletionTimestamp.Time; end.After(c.View.Now) {
		how += "; it ends at " + phrase.Clock(end, c.View.Now) + " at the latest"
	}
	return how
}

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
