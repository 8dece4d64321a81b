package device

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/node"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// deviceModels are the devices that nodes of a kind offer, by the kind: those of the node that offers the most of them, the first of several.
// They are found once for a view, as a cluster of which all nodes are new has as many queries as nodes.
type deviceModels struct {
	// byType is by instance type, byPool by pool, and byPoolOnly by pool of the nodes without an instance type.
	byType, byPool, byPoolOnly map[string]corev1.ResourceList
}

// deviceModelsOf are those of a view.
func deviceModelsOf(v *view.View) *deviceModels {
	type key struct{}
	return view.Once(v, key{}, func() *deviceModels {
		m := &deviceModels{map[string]corev1.ResourceList{}, map[string]corev1.ResourceList{}, map[string]corev1.ResourceList{}}
		for _, n := range v.Snap.Nodes {
			m.add(n)
		}
		return m
	})
}

func (m *deviceModels) add(n *corev1.Node) {
	devices := Of(n)
	if len(devices) == 0 {
		return
	}
	keep := func(of map[string]corev1.ResourceList, kind string) {
		if kind != "" && len(devices) > len(of[kind]) {
			of[kind] = devices
		}
	}
	kind, pool := n.Labels[corev1.LabelInstanceTypeStable], node.PoolOf(n)
	keep(m.byType, kind)
	keep(m.byPool, pool)
	if kind == "" {
		keep(m.byPoolOnly, pool)
	}
}

// like are the devices of nodes of the same kind as a node: of its instance type, or, where that of one of them is not known, of its pool.
func (m *deviceModels) like(n *corev1.Node) corev1.ResourceList {
	kind, pool := n.Labels[corev1.LabelInstanceTypeStable], node.PoolOf(n)
	if kind == "" {
		return m.byPool[pool]
	}
	if devices := m.byType[kind]; len(devices) > 0 {
		return devices
	}
	return m.byPoolOnly[pool]
}

// lacks reports whether a node has the devices of its kind but one. That it has none of them proves nothing: some distributions give all nodes one instance type.
func (m *deviceModels) lacks(n *corev1.Node, name corev1.ResourceName) bool {
	its, like := Of(n), m.like(n)
	if q := like[name]; q.IsZero() || len(its) == 0 {
		return false
	}
	for other, q := range its {
		if q.Cmp(like[other]) != 0 {
			return false
		}
	}
	return true
}

// Of are the devices that a node offers.
func Of(n *corev1.Node) corev1.ResourceList {
	devices := corev1.ResourceList{}
	for name, q := range n.Status.Allocatable {
		if request.IsDevice(name) && !q.IsZero() {
			devices[name] = q
		}
	}
	return devices
}

// Equipped is a node with the devices that its plugins have not advertised yet: of each vendor as many as it knows of, as its NodeClaim promises, as nodes like it
// have, or as its labels count.
func Equipped(c *stage.Context, n *corev1.Node) *corev1.Node {
	up := n
	for _, known := range []corev1.ResourceList{n.Status.Capacity, c.View.Promised(n), deviceModelsOf(c.View).like(n), request.Counted(n)} {
		before := up
		for name, q := range known {
			if request.IsDevice(name) && !q.IsZero() && !offersOf(before, name) {
				if up == before {
					up = before.DeepCopy()
				}
				if up.Status.Allocatable == nil {
					up.Status.Allocatable = corev1.ResourceList{}
				}
				up.Status.Allocatable[name] = q
			}
		}
	}
	return up
}
