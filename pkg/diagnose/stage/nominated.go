package stage

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Nominated are the pods of others for which a scheduler keeps room on a node, each on that node. A scheduler counts them as if they were
// there for every pod of no higher priority; so they come before this gang.
func (c *Context) Nominated() []*corev1.Pod {
	all := view.Once(c.View, "nominated pods", func() []*corev1.Pod { return nominated(c.View) })
	if len(all) == 0 {
		return nil
	}
	own, mine := c.Gang.ExistingPods(), TermsOf(c.Gang, c.Request).Priority
	var others []*corev1.Pod
	for _, p := range all {
		isOwn := slices.ContainsFunc(own, func(o *corev1.Pod) bool { return o.Namespace == p.Namespace && o.Name == p.Name })
		if !isOwn && c.Gang.Bare == nil && corev1helpers.PodPriority(p) >= mine {
			others = append(others, p)
		}
	}
	return others
}

// nominated are copies of the pods that wait and have a node nominated for them, each on that node.
func nominated(v *view.View) []*corev1.Pod {
	var all []*corev1.Pod
	for _, p := range v.Snap.Pods {
		if p.Status.NominatedNodeName == "" || p.Spec.NodeName != "" || p.DeletionTimestamp != nil {
			continue
		}
		placed := p.DeepCopy()
		placed.Spec.NodeName = p.Status.NominatedNodeName
		if placement.Holds(placed) {
			all = append(all, placed)
		}
	}
	return all
}

// KeptFor reads like: n1 is kept for research/big (priority 100): which room others were promised, one text a node and job.
func (c *Context) KeptFor(pods []*corev1.Pod) []string {
	var texts []string
	for _, p := range pods {
		rival := audience.New("Pod", p.Namespace, p.Name)
		if ref := metav1.GetControllerOf(p); ref != nil {
			rival = audience.New(ref.Kind, p.Namespace, ref.Name)
		}
		text := fmt.Sprintf("%s is kept for %s (priority %d)", p.Spec.NodeName, c.Reader.Name(rival.Sized(request.Of(p), corev1helpers.PodPriority(p))), corev1helpers.PodPriority(p))
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}
