package stage

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
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

// BringBack is what an administrator can do about pods that are being deleted on a node whose kubelet does not report, and the command for the one thing. ok is false
// for a pod that something else keeps.
func (c *Context) BringBack(p *corev1.Pod) (what, run string, ok bool) {
	n := c.View.Cluster().Node(p.Spec.NodeName)
	if n == nil || placement.NodeReady(n) || len(p.Finalizers) > 0 {
		return "", "", false
	}
	return fmt.Sprintf("node %s is not ready for %s: bring it back, or once it is known to be off, taint it out of service: its pods are removed then, and its volumes detached",
		n.Name, phrase.Age(c.View.Age(placement.ReadyChangedAt(n)))), command.Kubectl("", "taint", "nodes", n.Name, corev1.TaintNodeOutOfService+"=nodeshutdown:NoExecute"), true
}

// BringBackNodes adds what an administrator can do about the nodes of pods that nothing else keeps.
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

// Clear lets pods go that are stuck in their deletion. Those that only their nodes keep go when these are back: they may still run there, and to delete them by force would start
// others alongside.
func (c *Context) Clear(pods []*corev1.Pod) answer.Action {
	names := c.PodNames(pods)
	a := answer.Action{Kind: answer.Fix, By: answer.Admin, Change: map[string]any{"pods": names[:min(len(names), command.MaxObjects)]}}
	var cleared, nodes, commands []string
	away := sets.New[string]()
	for i, p := range pods {
		if _, _, ok := c.BringBack(p); !ok {
			cleared, commands = append(cleared, names[i]), append(commands, command.Clear(p))
		} else if !away.Has(p.Spec.NodeName) {
			away.Insert(p.Spec.NodeName)
			nodes = append(nodes, p.Spec.NodeName)
		}
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
	if len(p.Finalizers) > 0 {
		return "it is held by finalizer " + strings.Join(p.Finalizers, ", ")
	}
	if n := c.View.Cluster().Node(p.Spec.NodeName); n == nil || !placement.NodeReady(n) {
		return "only the kubelet of its node can confirm that it has ended"
	}
	return "its kubelet has not ended it"
}
