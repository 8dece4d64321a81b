package stage

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
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

// keepers are what keeps a pod that is stuck in its deletion: its node, if the kubelet there has not confirmed its end and does not report, or else nil; and the finalizers
// that no controller of Kubernetes itself takes away.
func (c *Context) keepers(p *corev1.Pod) (node *corev1.Node, finalizers []string) {
	finalizers = slices.DeleteFunc(slices.Clone(p.Finalizers), command.OfKubernetes)
	if n := c.View.Cluster().Node(p.Spec.NodeName); n != nil && !placement.NodeReady(n) && !(ended(p) && len(p.Finalizers) > 0) {
		node = n
	}
	return node, finalizers
}

// ended reports whether all containers of a pod have ended, or its kubelet has nothing to do with it any more.
func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || p.DeletionGracePeriodSeconds != nil && *p.DeletionGracePeriodSeconds == 0
}

// forController reports whether a pod waits for a controller of Kubernetes itself, if nothing else keeps it.
func forController(p *corev1.Pod) bool {
	return slices.Contains(p.Finalizers, metav1.FinalizerDeleteDependents) || len(p.Finalizers) > 0 && ended(p)
}

// Kept adds why those of some pods that are being deleted may not go in time: they should have gone, or someone has to take a finalizer away. It returns one of them; nil if
// there is none.
func (c *Context) Kept(f *Finding, pods []*corev1.Pod) *corev1.Pod {
	pods = slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool {
		return p.DeletionTimestamp.After(c.View.Now) && !slices.ContainsFunc(p.Finalizers, func(name string) bool { return !command.OfKubernetes(name) })
	})
	if len(pods) == 0 {
		return nil
	}
	DetailEach(f, pods, func(p *corev1.Pod) string { return fmt.Sprintf("%s %s: %s", p.Name, c.Overdue(p), c.HeldBy(p)) })
	return pods[0]
}

// BringBack is what an administrator can do about pods that are being deleted on a node whose kubelet does not report, and the command that shows the node. ok is false
// for a pod that no node keeps.
func (c *Context) BringBack(p *corev1.Pod) (what, run string, ok bool) {
	n, _ := c.keepers(p)
	if n == nil {
		return "", "", false
	}
	return fmt.Sprintf("node %s is not ready for %s: bring it back, or once it is known to be off, taint it out of service: its pods are removed then, and its volumes detached (%s)",
		n.Name, phrase.Age(c.View.Age(placement.ReadyChangedAt(n))), outOfService(n)), command.Kubectl("", "describe", "node", n.Name), true
}

// outOfService is the command that has the pods of a node that is off removed, and its volumes detached.
func outOfService(n *corev1.Node) string {
	return command.Kubectl("", "taint", "nodes", n.Name, corev1.TaintNodeOutOfService+"=nodeshutdown:NoExecute")
}

// BringBackNodes adds what an administrator can do about the nodes that keep pods.
func (c *Context) BringBackNodes(f *Finding, pods []*corev1.Pod) *Finding {
	nodes := sets.New[string]()
	for _, p := range pods {
		if what, run, ok := c.BringBack(p); ok && !nodes.Has(p.Spec.NodeName) && len(nodes) < MaxLines {
			nodes.Insert(p.Spec.NodeName)
			f.Detail("%s", what).Run(run)
		}
	}
	return f
}

// GivenUp is what it costs to clear pods.
const GivenUp = "what the finalizer or the node was to finish is given up"

// ClearPods adds to a finding about pods that are stuck in their deletion who has to act, and how.
func (c *Context) ClearPods(f *Finding, pods []*corev1.Pod) *Finding {
	return c.BringBackNodes(f, pods).Fix(Fix{
		Action: c.Clear(pods),
		Apply:  func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Gone(s, pods) },
	})
}

// Clear lets pods go that are stuck in their deletion. Those that their nodes keep go when these are back: they may still run there, and to delete them by force would start
// others alongside.
func (c *Context) Clear(pods []*corev1.Pod) answer.Action {
	names := c.PodNames(pods)
	a := answer.Action{Kind: answer.Fix, By: answer.Admin, Change: map[string]any{"pods": names[:min(len(names), command.MaxObjects)]}}
	var cleared, nodes, commands []string
	away := sets.New[string]()
	for i, p := range pods {
		node, finalizers := c.keepers(p)
		if len(finalizers) > 0 || node == nil && !forController(p) {
			cleared, commands = append(cleared, names[i]), append(commands, command.Clear(p))
		}
		if node != nil && !away.Has(node.Name) {
			away.Insert(node.Name)
			if nodes = append(nodes, node.Name); len(nodes) == 1 {
				a.How = "or, once " + node.Name + " is known to be off: " + outOfService(node)
			}
		}
	}
	if len(cleared)+len(nodes) == 0 { // what controllers of Kubernetes wait for has come, or is none of these pods
		a.Text, a.How = "have kube-controller-manager end the deletion of "+phrase.Names(names), "whoever runs the cluster sees to it"
	}
	if len(cleared) > 0 {
		a.Text, a.Cost = "clear "+phrase.Names(cleared), GivenUp
	}
	if len(nodes) > 0 {
		if a.Text != "" {
			a.Text += " and "
		}
		a.Text += "bring back " + phrase.Verb(len(nodes), "node ", "nodes ") + phrase.Names(nodes)
		a.Change["nodes"] = nodes[:min(len(nodes), command.MaxObjects)]
		commands = append(commands, command.Kubectl("", "describe", "node", nodes[0]))
	}
	a.Command = command.ForEach(commands...)
	return a
}

// Overdue is how long ago a pod should have gone that is stuck in its deletion, if that was before now.
func (c *Context) Overdue(p *corev1.Pod) string {
	if end := p.DeletionTimestamp.Time; end.Before(c.View.Now) {
		return "should have gone " + phrase.Age(c.View.Age(end)) + " ago"
	}
	return "is being deleted"
}

// HeldBy is why a pod that is stuck in its deletion is still there: who has to act.
func (c *Context) HeldBy(p *corev1.Pod) string {
	node, finalizers := c.keepers(p)
	of := strings.Join(finalizers, ", ")
	switch {
	case node != nil && of != "":
		return "the kubelet of its node has to confirm that it has ended, and it is held by finalizer " + of
	case of != "":
		return "it is held by finalizer " + of
	case node != nil:
		return "only the kubelet of its node can confirm that it has ended"
	case slices.Contains(p.Finalizers, metav1.FinalizerDeleteDependents):
		return "the garbage collector of Kubernetes deletes what it owns first"
	case forController(p):
		return "kube-controller-manager has not taken finalizer " + strings.Join(p.Finalizers, ", ") + " away"
	case c.View.Cluster().Node(p.Spec.NodeName) == nil:
		return "its node is gone: kube-controller-manager removes such pods by itself"
	}
	return "its kubelet has not ended it"
}
