package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// nearRule keeps two members off the same node.
type nearRule struct {
	key  string     // node label that must be there for the rule to count; empty: always
	a, b int        // classes; may be the same
	word Constraint // the rule
}

// relatePorts keeps members that want the same host port off the same node.
func (t *task) relatePorts() {
	if t.opts.Ignore.Has(HostPort) {
		return
	}
	for a := range t.classes {
		used := fwk.HostPortInfo{}
		for _, p := range util.GetHostPorts(t.classes[a].rules.pod) {
			used.Add(p.HostIP, string(p.Protocol), p.HostPort)
		}
		for b := a; b < len(t.classes) && len(used) > 0; b++ {
			if slices.ContainsFunc(util.GetHostPorts(t.classes[b].rules.pod), func(p corev1.ContainerPort) bool {
				return used.CheckConflict(p.HostIP, string(p.Protocol), p.HostPort)
			}) {
				t.near = append(t.near, nearRule{a: a, b: b, word: HostPort})
			}
		}
	}
}

// relateDisks keeps members off the same node that mount a disk that only one may.
func (t *task) relateDisks() {
	if t.opts.Ignore.Has(VolumeNode) {
		return
	}
	for a := range t.classes {
		taken := t.c.disks(t.classes[a].rules.pod)
		for b := a; b < len(t.classes) && taken != nil; b++ {
			alone := newNode(&corev1.Node{}, []fwk.PodInfo{podInfo(t.classes[b].rules.pod)})
			if len(taken(alone)) > 0 {
				t.near = append(t.near, nearRule{a: a, b: b, word: VolumeNode})
			}
		}
	}
}

// tellsNodesApart tells whether no two nodes have the same value of a label.
func (c *Cluster) tellsNodesApart(key string) bool {
	seen := make(map[string]bool, len(c.nodes))
	for _, n := range c.nodes {
		if value, ok := n.obj.Labels[key]; ok {
			if seen[value] {
				return false
			}
			seen[value] = true
		}
	}
	return true
}

// clash fills in which classes a site does not take together, and limits the slots of a class that clashes with itself.
func (t *task) clash(s *site) {
	if len(t.near) == 0 {
		return
	}
	s.clash = make([]uint64, len(t.classes))
	for _, r := range t.near {
		if r.key != "" {
			if _, ok := s.n.obj.Labels[r.key]; !ok {
				continue
			}
		}
		s.clash[r.a] |= 1 << r.b
		s.clash[r.b] |= 1 << r.a
	}
	for i := range t.classes {
		if s.clash[i]&(1<<i) != 0 {
			s.slots[i] = min(s.slots[i], 1)
		}
	}
}
