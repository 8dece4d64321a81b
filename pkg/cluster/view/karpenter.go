package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/placement"
)

// What Karpenter writes: a NodePool is what it makes nodes of, a NodeClaim one node that it has ordered. The node has the label of its pool, and, once all of its
// devices are there and its startup taints are gone, that it is initialized.
const (
	karpenterGroup  = "karpenter.sh"
	nodePoolLabel   = karpenterGroup + "/nodepool"
	initializedNode = karpenterGroup + "/initialized"
)

// KarpenterKinds are the kinds of Karpenter that are read.
func KarpenterKinds() []schema.GroupKind { return []schema.GroupKind{nodePoolKind(), nodeClaimKind()} }

func nodePoolKind() schema.GroupKind {
	return schema.GroupKind{Group: karpenterGroup, Kind: "NodePool"}
}

func nodeClaimKind() schema.GroupKind {
	return schema.GroupKind{Group: karpenterGroup, Kind: "NodeClaim"}
}

// NodeClaim is a node that Karpenter has ordered.
type NodeClaim struct {
	*unstructured.Unstructured
	Spec struct {
		Taints        []corev1.Taint `json:"taints"`
		StartupTaints []corev1.Taint `json:"startupTaints"`
	}
	Status struct {
		NodeName    string              `json:"nodeName"`
		ProviderID  string              `json:"providerID"`
		Allocatable corev1.ResourceList `json:"allocatable"`
		Conditions  []metav1.Condition  `json:"conditions"`
	}
}

// NodePool is what Karpenter makes nodes of.
type NodePool struct {
	*unstructured.Unstructured
	Spec struct {
		// Limits are how much all of its nodes may have together.
		Limits   corev1.ResourceList `json:"limits"`
		Template struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Spec struct {
				StartupTaints []corev1.Taint                   `json:"startupTaints"`
				Requirements  []corev1.NodeSelectorRequirement `json:"requirements"`
			} `json:"spec"`
		} `json:"template"`
	}
	Status struct {
		// Resources are what they have.
		Resources  corev1.ResourceList `json:"resources"`
		Conditions []metav1.Condition  `json:"conditions"`
	}
}

// NodePools are those that can be read, as they are ordered in the snapshot. The caller does not change the list.
func (w *View) NodePools() []*NodePool {
	type key struct{}
	return Once(w, key{}, func() (pools []*NodePool) {
		if w.base != nil && w.same(nodePoolKind()) {
			return w.base.NodePools()
		}
		for _, u := range w.Snap.Custom[nodePoolKind()] {
			pool := &NodePool{Unstructured: u}
			if w.readField(u, "spec", &pool.Spec) {
				w.readField(u, "status", &pool.Status) // what it is made of counts without
				pools = append(pools, pool)
			}
		}
		return pools
	})
}

// NodePoolOf is the NodePool of a node; nil without.
func (w *View) NodePoolOf(n *corev1.Node) *NodePool {
	if name := n.Labels[nodePoolLabel]; name != "" {
		for _, pool := range w.NodePools() {
			if pool.GetName() == name {
				return pool
			}
		}
	}
	return nil
}

// mostValues is how many values of one label are named: a pool may have hundreds of types of machines.
const mostValues = 4

// Gives are the labels that nodes of the pool have by its template, as texts: team=ml; of a requirement with several values it is one of these.
func (p *NodePool) Gives() (labels []string) {
	of := p.Spec.Template.Metadata.Labels
	for _, key := range slices.Sorted(maps.Keys(of)) {
		labels = append(labels, key+"="+of[key])
	}
	for _, r := range p.Spec.Template.Spec.Requirements {
		if more := len(r.Values) - mostValues; more > 0 {
			r.Values = append(slices.Clone(r.Values[:mostValues]), fmt.Sprintf("%d more", more))
		}
		if r.Operator == corev1.NodeSelectorOpIn {
			labels = append(labels, placement.Expression(r))
		}
	}
	return labels
}

// Unready is why Karpenter makes no nodes of the pool; empty if that is not reported.
func (p *NodePool) Unready() string {
	for _, c := range p.Status.Conditions {
		if c.Type == "Ready" && c.Status == metav1.ConditionFalse {
			return cmp.Or(c.Message, c.Reason)
		}
	}
	return ""
}

// Exceeded are the limits that so many more nodes like one exceed, each as what it would have to be.
func (p *NodePool) Exceeded(n *corev1.Node, more int64) corev1.ResourceList {
	exceeded := corev1.ResourceList{}
	for name, limit := range p.Spec.Limits {
		total, each := p.Status.Resources[name].DeepCopy(), n.Status.Capacity[name].DeepCopy()
		each.Mul(more)
		if total.Add(each); total.Cmp(limit) > 0 {
			exceeded[name] = total
		}
	}
	return exceeded
}

// NodeClaim finds the one of a name. It is nil if there is none; known is false where it is not known which there are.
func (w *View) NodeClaim(name string) (claim *NodeClaim, known bool) {
	claims := w.nodeClaims()
	if claim := claims.byName[name]; claim != nil {
		return claim, true
	}
	const resource = "nodeclaims." + karpenterGroup
	served := slices.ContainsFunc(w.Snap.Server.Resources, func(r string) bool { return strings.HasPrefix(r, resource+"/") })
	return nil, (served || len(claims.all) > 0) && w.Snap.CanList(resource, "")
}

// NodeClaimEvents are the messages about NodeClaims of a name, whether there is one or not. What has no namespace has its events in the default one.
func (w *View) NodeClaimEvents(name string) []Event {
	return slices.Concat(w.EventsNamed(nodeClaimKind(), "", name), w.EventsNamed(nodeClaimKind(), metav1.NamespaceDefault, name))
}

// nodeClaims are those that can be read.
type nodeClaims struct {
	all    []*NodeClaim
	byName map[string]*NodeClaim
}

func (w *View) nodeClaims() nodeClaims {
	type key struct{}
	return Once(w, key{}, func() nodeClaims {
		if w.base != nil && w.same(nodeClaimKind()) {
			return w.base.nodeClaims()
		}
		claims := nodeClaims{byName: map[string]*NodeClaim{}}
		for _, u := range w.Snap.Custom[nodeClaimKind()] {
			claim := &NodeClaim{Unstructured: u}
			if w.readField(u, "spec", &claim.Spec) && w.readField(u, "status", &claim.Status) {
				claims.all = append(claims.all, claim)
				claims.byName[claim.GetName()] = claim
			}
		}
		return claims
	})
}

// claimed are the NodeClaims whose nodes are there: which node, and by the name of the node which claim.
type claimed struct {
	nodes  map[*NodeClaim]*corev1.Node
	claims map[string]*NodeClaim
}

// claimed joins NodeClaims and nodes, by the name that the claim of a node that is registered has, or by the machine.
func (w *View) claimed() claimed {
	type key struct{}
	return Once(w, key{}, func() claimed {
		joined := claimed{map[*NodeClaim]*corev1.Node{}, map[string]*NodeClaim{}}
		byName, byMachine := map[string]*NodeClaim{}, map[string]*NodeClaim{}
		for _, claim := range w.nodeClaims().all {
			byName[claim.Status.NodeName], byMachine[claim.Status.ProviderID] = claim, claim
		}
		for _, n := range w.Snap.Nodes {
			claim := byName[n.Name]
			if claim == nil && n.Spec.ProviderID != "" {
				claim = byMachine[n.Spec.ProviderID]
			}
			if claim != nil {
				joined.nodes[claim], joined.claims[n.Name] = n, claim
			}
		}
		return joined
	})
}

// NodeOf is the node that a NodeClaim came to; nil while it is not there.
func (w *View) NodeOf(claim *NodeClaim) *corev1.Node { return w.claimed().nodes[claim] }

// Promised is what a node will have, or should, as its NodeClaim promises it; nil without one.
func (w *View) Promised(n *corev1.Node) corev1.ResourceList {
	if claim := w.claimed().claims[n.Name]; claim != nil {
		return claim.Status.Allocatable
	}
	return nil
}

// readField reads one field of an object; what cannot be read is a problem.
func (w *View) readField(u *unstructured.Unstructured, field string, into any) bool {
	content, _, err := unstructured.NestedMap(u.Object, field)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, into)
	}
	if err != nil {
		w.problem(u, err)
	}
	return err == nil
}

// Failure is why the node could not be launched at the last try; empty if that is not reported. Karpenter tries again, and deletes a claim for which there is no capacity.
func (n *NodeClaim) Failure() string {
	for _, c := range n.Status.Conditions {
		if c.Type == "Launched" && c.Status != metav1.ConditionTrue && (c.Status == metav1.ConditionFalse || strings.HasSuffix(c.Reason, "Failed")) {
			return cmp.Or(c.Message, c.Reason)
		}
	}
	return ""
}

// Node is the node as the claim promises it; nil where it does not state what the node will have.
func (n *NodeClaim) Node() *corev1.Node {
	if len(n.Status.Allocatable) == 0 {
		return nil
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.GetName(), UID: n.GetUID(), Labels: map[string]string{}}}
	for key, value := range n.GetLabels() {
		node.Labels[key] = value
	}
	node.Labels[corev1.LabelHostname] = node.Name
	node.Spec.Taints = n.Spec.Taints
	node.Status.Allocatable, node.Status.Capacity = n.Status.Allocatable, n.Status.Allocatable
	return node
}

// Started is a node without the taints that it has until it has started, as its NodePool or NodeClaim declares; the node itself if it has none.
func (w *View) Started(n *corev1.Node) *corev1.Node {
	if len(n.Spec.Taints) == 0 || n.Labels[initializedNode] == "true" {
		return n
	}
	declared := w.startupTaints()
	among := slices.Concat(declared.byPool[n.Labels[nodePoolLabel]], declared.byNode[n.Name])
	startup := func(t corev1.Taint) bool {
		return slices.ContainsFunc(among, func(declared corev1.Taint) bool { return declared.MatchTaint(&t) })
	}
	if !slices.ContainsFunc(n.Spec.Taints, startup) {
		return n
	}
	n = n.DeepCopy()
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, startup)
	return n
}

// startupTaints are the taints that nodes have until they have started, by the pool or the name of the node.
type startupTaints struct{ byPool, byNode map[string][]corev1.Taint }

func (w *View) startupTaints() startupTaints {
	return Once(w, startupTaintsKey{}, func() startupTaints {
		all := startupTaints{map[string][]corev1.Taint{}, map[string][]corev1.Taint{}}
		for _, pool := range w.NodePools() {
			all.byPool[pool.GetName()] = pool.Spec.Template.Spec.StartupTaints
		}
		for name, claim := range w.claimed().claims {
			all.byNode[name] = claim.Spec.StartupTaints
		}
		return all
	})
}

// startupTaintsKey is the key of what is known of startup taints.
type startupTaintsKey struct{}

// starting reports whether a node has such taints.
func (w *View) starting() bool {
	return slices.ContainsFunc(w.Snap.Nodes, func(n *corev1.Node) bool { return w.Started(n) != n })
}
