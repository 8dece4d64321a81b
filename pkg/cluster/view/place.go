package view

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Party is a gang as the simulation sees it, and which members its roles stand for.
type Party struct {
	placement.Gang
	// Members are the members that have no node, by the name of the simulated role, in order.
	Members map[string][]gang.Member
}

// Party is the part of the gang that has no node yet. Members that are alike are one role; members of a role whose pods
// differ (another volume each, say) are several.
func (w *View) Party(g *gang.Gang) Party {
	p := Party{Members: map[string][]gang.Member{}}
	p.MinMember = min(g.Min, g.Total()) - g.Count(gang.Succeeded)
	names, selected := map[string]string{}, w.selectedLabels(g)
	for _, m := range g.Members {
		switch m.State {
		case gang.Starting, gang.Running:
			p.Bound = append(p.Bound, m.Pod.UID)
			continue
		case gang.Succeeded:
			continue
		default: // the others need a place
		}
		pod := m.Pod
		if pod == nil || m.State == gang.Failed || m.State == gang.Terminating || m.State == gang.Lost {
			pod = w.Virtual(g, m) // the replacement
		}
		shape := signature(m.Role, pod, selected)
		name, known := names[shape]
		if !known {
			name = m.Role
			if _, taken := p.Members[name]; taken {
				name = fmt.Sprintf("%s#%d", m.Role, len(names)+1)
			}
			names[shape] = name
			p.Roles = append(p.Roles, placement.Role{Name: name, Pod: pod})
		}
		p.Members[name] = append(p.Members[name], m)
	}
	for i := range p.Roles {
		r := &p.Roles[i]
		r.Count = int32(len(p.Members[r.Name]))
		r.Min = w.roleMin(g, r.Name)
	}
	if g.Decl != nil {
		p.TopologyKey = g.Decl.TopologyKey
	}
	return p
}

// roleMin is the minimum that the declaration asks of one role, less the members that have it met already.
func (w *View) roleMin(g *gang.Gang, role string) int32 {
	if g.Decl == nil {
		return 0
	}
	for name, n := range g.Decl.RoleMin {
		if r := g.RoleByName(name); r != nil && r.Name == role {
			for _, m := range g.Members {
				if m.Role == role && (m.State == gang.Starting || m.State == gang.Running || m.State == gang.Succeeded) {
					n--
				}
			}
			return max(0, n)
		}
	}
	return 0
}

// signature is equal for pods that a scheduler cannot tell apart; selected are the keys of labels that it looks at. A pod that exists and the template that it was made from
// differ in what admission fills in: tokens to mount, tolerations of short outages, names.
func signature(role string, pod *corev1.Pod, selected map[string]bool) string {
	spec := pod.Spec
	asks := corev1.PodSpec{
		NodeSelector: spec.NodeSelector, Affinity: spec.Affinity, TopologySpreadConstraints: spec.TopologySpreadConstraints,
		ResourceClaims: spec.ResourceClaims, Overhead: spec.Overhead, Resources: spec.Resources, HostNetwork: spec.HostNetwork,
	}
	for _, t := range spec.Tolerations {
		if t.Effect != corev1.TaintEffectNoExecute || t.Key != corev1.TaintNodeNotReady && t.Key != corev1.TaintNodeUnreachable {
			asks.Tolerations = append(asks.Tolerations, t)
		}
	}
	for _, v := range spec.Volumes {
		if !anywhere(v) {
			asks.Volumes = append(asks.Volumes, v)
		}
	}
	asks.InitContainers, asks.Containers = demands(spec.InitContainers), demands(spec.Containers)
	labels := map[string]string{}
	for key, value := range pod.Labels {
		if selected[key] {
			labels[key] = value
		}
	}
	text, err := json.Marshal(struct {
		Labels map[string]string
		Spec   corev1.PodSpec
	}{labels, asks})
	if err != nil {
		return role + "/" + pod.Name // a spec that does not marshal is like no other
	}
	return role + "/" + string(text)
}

// anywhere tells a volume that every node can provide. Each pod has at least one, with a name of its own: the token of
// its service account.
func anywhere(v corev1.Volume) bool {
	return v.Projected != nil || v.Secret != nil || v.ConfigMap != nil || v.DownwardAPI != nil || v.EmptyDir != nil || v.HostPath != nil
}

// demands are containers with nothing but what they ask of a node. A port counts only if it is one of the host.
func demands(containers []corev1.Container) []corev1.Container {
	var out []corev1.Container
	for _, c := range containers {
		d := corev1.Container{RestartPolicy: c.RestartPolicy, Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests}}
		for _, p := range c.Ports {
			if p.HostPort != 0 {
				d.Ports = append(d.Ports, corev1.ContainerPort{HostPort: p.HostPort, HostIP: p.HostIP, Protocol: p.Protocol})
			}
		}
		out = append(out, d)
	}
	return out
}
