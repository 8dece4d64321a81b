package stage

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Deletion is how a pod goes that is being deleted, and until when it may take, or why it does not go.
func (c *Context) Deletion(p *corev1.Pod) string {
	how := "it is being deleted"
	if by := gang.Disruption(p); by != nil {
		how = strings.TrimSpace(by.Reason + " " + by.Message)
	}
	if end := p.DeletionTimestamp.Time; end.After(c.View.Now) && c.View.Stuck(p) {
		how += "; it does not go by itself: " + c.HeldBy(p)
	} else if end.After(c.View.Now) {
		how += "; it ends at " + phrase.Clock(end, c.View.Now) + " at the latest"
	}
	return how
}

// BringBack is what an administrator can do about pods that are being deleted on a node whose kubelet does not report, and the command for the one thing. ok is false
// for a pod that something else keeps.
func (c *Context) BringBack(p *corev1.Pod) (what, run string, ok bool) {
	n := c.View.Cluster().Node(p.Spec.NodeName)
	if n == nil || view.NodeReady(n) || len(p.Finalizers) > 0 {
		return "", "", false
	}
	return fmt.Sprintf("node %s is not ready for %s: bring it back, or once it is known to be off, taint it out of service: its pods are removed then, and its volumes detached",
		n.Name, phrase.Age(c.View.Age(placement.ReadyChangedAt(n)))), command.Kubectl("", "taint", "nodes", n.Name, corev1.TaintNodeOutOfService+"=nodeshutdown:NoExecute"), true
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
