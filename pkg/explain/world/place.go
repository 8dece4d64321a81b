package world

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/fit"
)

// Party is a gang as the simulation sees it, and which members its roles stand for.
type Party struct {
	fit.Gang
	// Members are the members that have no node, by the name of the simulated role, in order.
	Members map[string][]Member
}

// Party is the part of the gang that has no node yet. Members that are alike are one role; members of a role whose pods
// differ (another volume each, say) are several.
func (w *World) Party(g *Gang) Party {
	p := Party{Members: map[string][]Member{}}
	p.MinMember = min(g.Min, g.Total()) - g.Count(Succeeded)
	names := map[string]string{}
	for _, m := range g.Members {
		switch m.State {
		case Placed, Up:
			p.Bound = append(p.Bound, m.Pod.UID)
			continue
		case Succeeded:
			continue
		}
		pod := m.Pod
		if pod == nil || m.State == Broken || m.State == Leaving || m.State == Lost {
			pod = w.Virtual(g, m) // the replacement
		}
		shape := signature(m.Role, pod)
		name, known := names[shape]
		if !known {
			name = m.Role
			if _, taken := p.Members[name]; taken {
				name = fmt.Sprintf("%s#%d", m.Role, len(names)+1)
			}
			names[shape] = name
			p.Roles = append(p.Roles, fit.Role{Name: name, Pod: pod})
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
func (w *World) roleMin(g *Gang, role string) int32 {
	if g.Decl == nil {
		return 0
	}
	for name, n := range g.Decl.RoleMin {
		if r := g.RoleByName(name); r != nil && r.Name == role {
			for _, m := range g.Members {
				if m.Role == role && (m.State == Placed || m.State == Up || m.State == Succeeded) {
					n--
				}
			}
			return max(0, n)
		}
	}
	return 0
}

// signature is equal for pods that the scheduler cannot tell apart.
func signature(role string, pod *corev1.Pod) string {
	spec := pod.Spec.DeepCopy()
	spec.Hostname, spec.Subdomain, spec.NodeName, spec.SchedulingGates = "", "", "", nil
	spec.Volumes = slices.DeleteFunc(spec.Volumes, anywhere)
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			c := &list[i]
			*c = corev1.Container{Name: c.Name, Resources: c.Resources, Ports: c.Ports, RestartPolicy: c.RestartPolicy}
		}
	}
	text, err := json.Marshal(spec)
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
