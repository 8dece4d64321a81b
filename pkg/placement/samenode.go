package placement

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// sameNodeRule is a constraint between members on one node: they cannot both be there.
type sameNodeRule struct {
	key        string     // node label that must be there for the rule to count; empty: always
	a, b       int        // roles; may be the same
	constraint Constraint // the rule
}

// hostPortCheck rejects nodes on which a host port of the pod is taken.
func hostPortCheck(_ *Cluster, pod *corev1.Pod) check {
	desired := util.GetHostPorts(pod)
	if len(desired) == 0 {
		return nil
	}
	return func(n *node) []Violation {
		if nodeports.Fits(pod, n.info) {
			return nil
		}
		var taken []string
		for _, p := range desired {
			if n.info.UsedPorts.CheckConflict(p.HostIP, string(p.Protocol), p.HostPort) {
				taken = append(taken, fmt.Sprintf("%d/%s", p.HostPort, p.Protocol))
			}
		}
		return []Violation{{Constraint: HostPort, Detail: strings.Join(taken, " ")}}
	}
}

// addHostPorts keeps members that want the same host port off the same node.
func (t *task) addHostPorts() {
	for a := range t.roles {
		if t.ignores(a, HostPort) {
			continue
		}
		used := fwk.HostPortInfo{}
		for _, p := range util.GetHostPorts(t.roles[a].rules.pod) {
			used.Add(p.HostIP, string(p.Protocol), p.HostPort)
		}
		for b := a; b < len(t.roles) && len(used) > 0; b++ {
			if !t.ignores(b, HostPort) && slices.ContainsFunc(util.GetHostPorts(t.roles[b].rules.pod), func(p corev1.ContainerPort) bool {
				return used.CheckConflict(p.HostIP, string(p.Protocol), p.HostPort)
			}) {
				t.sameNode = append(t.sameNode, sameNodeRule{a: a, b: b, constraint: HostPort})
			}
		}
	}
}

// addDisks keeps members off the same node that mount a disk that only one may.
func (t *task) addDisks() {
	for a := range t.roles {
		if t.ignores(a, VolumeNode) {
			continue
		}
		taken := diskCheck(t.c, t.roles[a].rules.pod)
		for b := a; b < len(t.roles) && taken != nil; b++ {
			alone := newNode(&corev1.Node{}, []fwk.PodInfo{podInfo(t.roles[b].rules.pod)})
			if !t.ignores(b, VolumeNode) && len(taken(alone)) > 0 {
				t.sameNode = append(t.sameNode, sameNodeRule{a: a, b: b, constraint: VolumeNode})
			}
		}
	}
}

// findConflicts fills in which roles a candidate does not take together, and limits the slots of a role that conflicts with itself.
func (t *task) findConflicts(s *candidate) {
	if len(t.sameNode) == 0 {
		return
	}
	s.conflicts = make([]uint64, len(t.roles))
	for _, r := range t.sameNode {
		if r.key != "" {
			if _, ok := s.n.obj.Labels[r.key]; !ok {
				continue
			}
		}
		s.conflicts[r.a] |= 1 << r.b
		s.conflicts[r.b] |= 1 << r.a
	}
	for i := range t.roles {
		if s.conflicts[i]&(1<<i) != 0 {
			s.slots[i] = min(s.slots[i], 1)
		}
	}
}

// conflictsWith returns the roles, as bits, that the candidate does not take together with a role.
func (s *candidate) conflictsWith(i int) uint64 {
	if s.conflicts == nil {
		return 0
	}
	return s.conflicts[i]
}
