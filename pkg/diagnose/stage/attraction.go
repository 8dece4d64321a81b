package stage

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Attraction is a required pod affinity to pods of others: a member has to be where they are.
type Attraction struct {
	corev1.PodAffinityTerm
	Selector labels.Selector
	// namespace is that of the pod which is attracted.
	namespace string
}

// Attractions are those of a pod. A term that selects the pod itself is none: the first of such pods may go anywhere.
func Attractions(pod *corev1.Pod) (all []Attraction) {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAffinity == nil {
		return nil
	}
	for _, term := range pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err != nil {
			continue
		}
		if a := (Attraction{term, selector, pod.Namespace}); !a.To(pod) {
			all = append(all, a)
		}
	}
	return all
}

// To reports whether it is to a pod. One that selects namespaces by label may be to a pod of any.
func (a Attraction) To(pod *corev1.Pod) bool {
	here := a.NamespaceSelector != nil || slices.Contains(a.Namespaces, pod.Namespace) || len(a.Namespaces) == 0 && pod.Namespace == a.namespace
	return here && a.Selector.Matches(labels.Set(pod.Labels))
}

// Domains are the values of the node label where pods are that it is to.
func (a Attraction) Domains(cluster *placement.Cluster) (at []string) {
	for _, n := range cluster.Nodes() {
		domain, ok := n.Labels[a.TopologyKey]
		if ok && !slices.Contains(at, domain) && slices.ContainsFunc(cluster.PodsOn(n.Name), a.To) {
			at = append(at, domain)
		}
	}
	slices.Sort(at)
	return at
}

// attracting are the pods on nodes that members have to be near.
func (c *Context) attracting() (pods []*corev1.Pod) {
	var all []Attraction
	for _, r := range c.Request.Roles {
		all = append(all, Attractions(r.Pod)...)
	}
	if len(all) == 0 {
		return nil
	}
	for _, h := range c.Others() {
		for _, p := range h.Pods {
			if slices.ContainsFunc(all, func(a Attraction) bool { return a.To(p) }) {
				pods = append(pods, p)
			}
		}
	}
	return pods
}

// Best is the cluster at its best, with what the gang has bound, and with the pods that its members have to be near: without them it would have no place
// at all.
func (c *Context) Best() *placement.Cluster {
	best := c.View.Best(c.Request.Bound)
	near := c.attracting()
	if len(near) == 0 {
		return best
	}
	type bestNear struct {
		gang         types.UID
		bound, roles string
	}
	var roles []string
	for _, r := range c.Request.Roles {
		roles = append(roles, r.Name)
	}
	return view.Once(c.View, bestNear{c.Gang.Meta.UID, fmt.Sprint(c.Request.Bound), fmt.Sprint(roles)}, func() *placement.Cluster { return best.With(near...) })
}

// Repaired is a node as [placement.Repaired] makes it, and as it is once it has started: without the taints that its NodePool declares for until then.
func (c *Context) Repaired(n *corev1.Node) *corev1.Node { return placement.Repaired(c.View.Started(n)) }
