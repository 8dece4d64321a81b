package gang

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// Composite is a composite PodGroup: of the parts that it has, so many have to be placed together.
type Composite struct {
	Name, Parent string
	// MinGroups is how many of its parts have to be placed, 1 or more.
	MinGroups int32
	// Topology is the label of nodes of which all its members share a value; empty for none.
	Topology string
	// Parts are in the order of their names.
	Parts []Part
}

// Part is a part of a composite PodGroup: a PodGroup, or a composite one.
type Part struct {
	Name string
	// Composite is the part that is a composite PodGroup; nil for a PodGroup.
	Composite *Composite
	// Min is how many members a PodGroup needs, and Pods are its pods that have not ended.
	Min  int32
	Pods []*corev1.Pod
	// Queued are how many pods the scheduler may try or has placed: those that are gated wait. Bound have a node, and Waiting have none; those of a
	// composite PodGroup are those of its parts.
	Queued, Bound, Waiting int32
}

// CompositePart is a part that is a composite PodGroup.
func CompositePart(c *Composite) Part {
	part := Part{Name: c.Name, Composite: c}
	for _, p := range c.Parts {
		part.Queued, part.Bound, part.Waiting = part.Queued+p.Queued, part.Bound+p.Bound, part.Waiting+p.Waiting
	}
	return part
}

// GroupPart is a part that is a PodGroup, with the pods that name it.
func GroupPart(name string, minimum int32, pods []*corev1.Pod) Part {
	part := Part{Name: name, Min: minimum}
	for _, pod := range pods {
		if podutil.IsPodTerminal(pod) {
			continue
		}
		part.Pods = append(part.Pods, pod)
		switch {
		case pod.Spec.NodeName != "":
			part.Bound++
			part.Queued++
		case len(pod.Spec.SchedulingGates) > 0:
			part.Waiting++
		default:
			part.Waiting++
			part.Queued++
		}
	}
	return part
}

// Complete reports whether the scheduler may try as many pods of a part as it needs.
func (p Part) Complete() bool {
	if p.Composite != nil {
		return p.Composite.Complete() >= p.Composite.MinGroups
	}
	return p.Queued >= p.Min
}

// Complete is of how many parts the scheduler may try as many pods as they need.
func (c *Composite) Complete() int32 { return c.count(Part.Complete) }

// Placed reports whether as many pods of a part have nodes as it needs.
func (p Part) Placed() bool {
	if p.Composite != nil {
		return p.Composite.count(Part.Placed) >= p.Composite.MinGroups
	}
	return p.Bound >= p.Min
}

func (c *Composite) count(is func(Part) bool) (n int32) {
	for _, p := range c.Parts {
		if is(p) {
			n++
		}
	}
	return n
}

// With returns the other PodGroups of a tree that have to be placed together with one of it at the least, those of the fewest pods without a node where there
// is a choice; only is that there is none.
func (c *Composite) With(name string) (others []Part, only bool) {
	others, only, _ = c.with(name)
	return others, only
}

func (c *Composite) with(name string) (others []Part, only, found bool) {
	for i, p := range c.Parts {
		switch {
		case p.Composite != nil:
			below, one, found := p.Composite.with(name)
			if found {
				others, only = c.needs(i)
				return append(below, others...), one && only, true
			}
		case p.Name == name:
			others, only = c.needs(i)
			return others, only, true
		}
	}
	return nil, false, false
}

// needs returns the PodGroups that a composite one needs placed, besides the part at an index, which is placed; -1 is none. A part without its pods may get
// them.
func (c *Composite) needs(besides int) (groups []Part, only bool) {
	missing, late := int(c.MinGroups), 0
	var wait []Part
	for i, p := range c.Parts {
		switch {
		case i == besides || p.Placed():
			missing--
		case p.Complete():
			wait = append(wait, p)
		default:
			late++
		}
	}
	if missing <= 0 {
		return nil, true
	}
	slices.SortStableFunc(wait, func(a, b Part) int { return cmp.Compare(a.Waiting, b.Waiting) })
	only = len(wait)+late <= missing
	for _, p := range wait[:min(missing, len(wait))] {
		if p.Composite == nil {
			groups = append(groups, p)
			continue
		}
		below, one := p.Composite.needs(-1)
		groups, only = append(groups, below...), only && one
	}
	return groups, only
}

// BoundPods are the pods of a tree that have nodes.
func (c *Composite) BoundPods() (pods []*corev1.Pod) {
	for _, p := range c.Parts {
		if p.Composite != nil {
			pods = append(pods, p.Composite.BoundPods()...)
		}
		for _, pod := range p.Pods {
			if pod.Spec.NodeName != "" {
				pods = append(pods, pod)
			}
		}
	}
	return pods
}

// Levels reports whether a composite PodGroup below the root states by which label of nodes its members share a domain.
func (c *Composite) Levels() bool {
	return slices.ContainsFunc(c.Parts, func(p Part) bool {
		return p.Composite != nil && (p.Composite.Topology != "" || p.Composite.Levels())
	})
}
