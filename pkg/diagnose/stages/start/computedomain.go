package start

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
)

// computeDomain is the label by which NVIDIA's DRA driver keeps which ComputeDomain a node is in, and which the daemons of one are: its value is the UID of that.
const computeDomain = "resource.nvidia.com/computeDomain"

// domainDaemons are the daemons, on all nodes, of the ComputeDomain that a node is in; known is false where the node is in none that can be seen.
func domainDaemons(c *stage.Context, node string) (daemons []*corev1.Pod, known bool) {
	byDomain := view.Once(c.View, computeDomain, func() map[string][]*corev1.Pod {
		all := map[string][]*corev1.Pod{}
		for _, p := range c.View.Snap.Pods {
			if domain := p.Labels[computeDomain]; domain != "" {
				all[domain] = append(all[domain], p)
			}
		}
		return all
	})
	domain := ""
	if n := c.Cluster().Node(node); n != nil {
		domain = n.Labels[computeDomain]
	}
	for _, p := range c.Cluster().PodsOn(node) {
		if of := p.Labels[computeDomain]; of != "" && domain == "" {
			domain = of
		}
	}
	return byDomain[domain], domain != ""
}

// domainOn adds to the finding that a ComputeDomain is not ready which of its daemons are not: its nodes find each other by these.
func domainOn(c *stage.Context, f *stage.Finding, node, report string) {
	if !notYetJoined.MatchString(report) {
		return
	}
	daemons, known := domainDaemons(c, node)
	if !known {
		return
	}
	var down []*corev1.Pod
	on := false
	for _, p := range daemons {
		on = on || p.Spec.NodeName == node
		if !podutil.IsPodReady(p) {
			down = append(down, p)
		}
	}
	if !on && len(daemons) > 0 {
		f.Detail("no daemon of its ComputeDomain has a pod on %s: see its taints, and DaemonSets in namespace %s", node, daemons[0].Namespace)
	}
	if len(down) == 0 {
		return
	}
	first := down[0]
	f.Message = strings.Replace(f.Message, ": ", fmt.Sprintf(": its ComputeDomain waits for %s: ", daemonState(c, first)), 1)
	f.Fact("daemons", c.PodNames(down))
	stage.DetailEach(f, down[1:], func(p *corev1.Pod) string { return "so it does for " + daemonState(c, p) })
	if c.Reader.Sees(first.Namespace) {
		f.Run(component.PodLog(first))
	}
}

// daemonState is a daemon, where it is, and what it suffers from.
func daemonState(c *stage.Context, p *corev1.Pod) string {
	text := c.TitleOf("pod", p)
	if p.Spec.NodeName != "" {
		text += " on " + p.Spec.NodeName
	}
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Waiting != nil {
			return fmt.Sprintf("%s, which is in %s (%s)", text, s.State.Waiting.Reason, phrase.Count(s.RestartCount, "restart"))
		}
	}
	if p.Spec.NodeName == "" {
		return text + ", which has no node"
	}
	return text + ", which is not ready"
}
