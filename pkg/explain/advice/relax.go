package advice

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/command"
	"github.com/gangctl/gangctl/pkg/explain/ladder"
	"github.com/gangctl/gangctl/pkg/explain/whatif"
	"github.com/gangctl/gangctl/pkg/fit"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/snapshot"
	"github.com/gangctl/gangctl/pkg/workload"
)

// relaxation is one rule of a role that can be dropped.
type relaxation struct {
	key, text string
	value     any
	step      command.Patch
	edit      func(*corev1.PodSpec)
}

// relax offers to drop or to change one rule.
func (s *search) relax() {
	for _, role := range s.g.Roles {
		for _, r := range append(s.rules(role), s.tolerations(role)...) {
			s.offer(s.resubmit(answer.Action{
				Kind: answer.Relax, By: answer.User, Text: r.text, Change: map[string]any{change(role.Name, r.key): r.value},
				Command: s.patch(role.Name, r.step),
			}, func(spec *whatif.Spec) { r.edit(&spec.Role(role.Name).Template.Spec) }))
		}
	}
	s.topology()
}

// rules are those that the pod template states.
func (s *search) rules(role workload.Role) []relaxation {
	spec := role.Template.Spec
	var all []relaxation
	for key, value := range spec.NodeSelector {
		all = append(all, relaxation{key: "nodeSelector." + key, value: "", text: fmt.Sprintf("do not ask for nodes with %s=%s", key, value),
			step: command.Patch{Op: "remove", Path: "/template/spec/nodeSelector/" + command.Escape(key)},
			edit: func(p *corev1.PodSpec) { delete(p.NodeSelector, key) }})
	}
	slices.SortFunc(all, func(a, b relaxation) int { return strings.Compare(a.key, b.key) })
	if a := spec.Affinity; a != nil {
		if a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			key := a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey
			all = append(all, relaxation{key: "podAffinity", value: "preferred", text: fmt.Sprintf("make the pod affinity (%s) a wish instead of a must", key),
				step: command.Patch{Op: "remove", Path: "/template/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution"},
				edit: func(p *corev1.PodSpec) { p.Affinity.PodAffinity = nil }})
		}
		if a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			all = append(all, relaxation{key: "podAntiAffinity", value: "preferred", text: "make the pod anti-affinity a wish instead of a must",
				step: command.Patch{Op: "remove", Path: "/template/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution"},
				edit: func(p *corev1.PodSpec) { p.Affinity.PodAntiAffinity = nil }})
		}
	}
	if slices.ContainsFunc(spec.TopologySpreadConstraints, func(t corev1.TopologySpreadConstraint) bool { return t.WhenUnsatisfiable == corev1.DoNotSchedule }) {
		all = append(all, relaxation{key: "topologySpread", value: "ScheduleAnyway", text: "make the topology spread a wish (ScheduleAnyway)",
			step: command.Patch{Op: "remove", Path: "/template/spec/topologySpreadConstraints"},
			edit: func(p *corev1.PodSpec) { p.TopologySpreadConstraints = nil }})
	}
	return append(all, hostPorts(spec)...)
}

func hostPorts(spec corev1.PodSpec) []relaxation {
	for i, c := range spec.Containers {
		for j, port := range c.Ports {
			if port.HostPort != 0 {
				return []relaxation{{key: "hostPort", value: "", text: fmt.Sprintf("do not ask for host port %d", port.HostPort),
					step: command.Patch{Op: "remove", Path: fmt.Sprintf("/template/spec/containers/%d/ports/%d/hostPort", i, j)},
					edit: func(p *corev1.PodSpec) {
						for i := range p.Containers {
							for j := range p.Containers[i].Ports {
								p.Containers[i].Ports[j].HostPort = 0
							}
						}
					}}}
			}
		}
	}
	return nil
}

// tolerations are those for taints that keep a role from nodes.
func (s *search) tolerations(role workload.Role) []relaxation {
	seen := map[corev1.Taint]bool{}
	var all []relaxation
	for _, m := range s.base.Matrices {
		for _, name := range m.Rejected(fit.Taint) {
			for _, t := range s.w.Cluster().Node(name).Spec.Taints {
				t.TimeAdded = nil
				if seen[t] || strings.HasPrefix(t.Key, "node.kubernetes.io/") || t.Effect == corev1.TaintEffectPreferNoSchedule {
					continue
				}
				seen[t] = true
				text := fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
				toleration := corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect}
				step := command.Patch{Op: "add", Path: "/template/spec/tolerations", Value: append(slices.Clone(role.Template.Spec.Tolerations), toleration)}
				all = append(all, relaxation{key: "tolerations", value: text, text: "tolerate the taint " + text + ", if its owner agrees", step: step,
					edit: func(p *corev1.PodSpec) { p.Tolerations = append(p.Tolerations, toleration) }})
			}
		}
	}
	slices.SortFunc(all, func(a, b relaxation) int { return strings.Compare(a.text, b.text) })
	return all
}

// topology offers to drop the rule of the gang object that all members share a domain.
func (s *search) topology() {
	d := s.g.Decl
	if d == nil || d.TopologyKey == "" {
		return
	}
	path := []string{"spec", "topologyConstraint"}
	if d.Key.Dialect == gang.Native {
		path = []string{"spec", "schedulingConstraints", "topology"}
	}
	s.offer(ladder.Fix{
		Action: answer.Action{Kind: answer.Relax, By: answer.User, Text: "let members be in several values of " + d.TopologyKey, Change: map[string]any{"podGroup.topology": ""},
			Command: command.JSONPatch(d.Key.Namespace, "podgroup."+d.Kind.Group, d.Key.Name, command.Patch{Op: "remove", Path: "/" + strings.Join(path, "/")})},
		Apply: func(snap *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(snap, d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name, func(u *unstructured.Unstructured) {
				unstructured.RemoveNestedField(u.Object, path...)
			})
		},
	})
}
