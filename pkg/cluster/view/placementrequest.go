package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/placement"
)

// PlacementRequest is a gang as the simulation sees it, and which members its roles stand for.
type PlacementRequest struct {
	placement.Gang
	// Members are the members that have no node, by the name of the simulated role, in order; those that the gang does not list are left
	// out, and come after them.
	Members map[string][]gang.Member
	// Shape is equal for requests that find the same room in a cluster of this view, whatever their gangs are called. It is empty for
	// one that is like no other: its members have volumes that not every node reaches, or devices that are allocated.
	Shape string
	// Unmodelled are rules about where members may be that the request has not.
	Unmodelled []string

	roles map[string]string // of the gang, by the name of the simulated role
	// members are equal for simulated roles, by name, whose members no scheduler can distinguish; none if Shape is empty.
	members map[string]string
}

// RoleShape is equal for simulated roles of requests with a Shape whose members no node distinguishes, however many they are; else empty.
func (p PlacementRequest) RoleShape(role string) string { return p.members[role] }

// With returns the request for pods to which something was added. Requests of one Shape to which the same is added are of one Shape again.
func (p PlacementRequest) With(added string) PlacementRequest {
	if added == "" || p.Shape == "" {
		return p
	}
	members := make(map[string]string, len(p.members))
	for role, shape := range p.members {
		members[role] = shape + added
	}
	p.Shape, p.members = p.Shape+added, members
	return p
}

// Member is member i of a simulated role, listed or not.
func (p PlacementRequest) Member(role string, i int32) gang.Member {
	if members := p.Members[role]; int(i) < len(members) {
		return members[i]
	}
	return gang.Member{Role: p.roles[role], Index: int(i), State: gang.Missing}
}

// PlacementRequest is the part of the gang that has no node yet. Members that are alike are one role; members of a role whose pods
// differ (another volume each, for example) are several.
func (w *View) PlacementRequest(g *gang.Gang) PlacementRequest {
	p := PlacementRequest{Members: map[string][]gang.Member{}, roles: map[string]string{}}
	p.Topology = Topology(g)
	p.MinMember = minMember(g, p.Topology)
	p.KeepDevices = g.Decl != nil && g.Decl.Key.Dialect == gang.Native && p.Topology.Required != ""
	alike := w.roleFinder(g, &p)
	for _, m := range g.Members {
		switch m.State {
		case gang.Starting, gang.Running:
			p.Bound = append(p.Bound, m.Pod.UID)
		case gang.Succeeded, gang.NotDue:
		default: // the others need a place
			name := alike.of(m, w.unplaced(g, m))
			p.Members[name] = append(p.Members[name], m)
		}
	}
	for i, pod := range w.Unreplaced(g) {
		m := gang.Member{Role: g.Roles[0].Name, Index: int(g.Total()) + i, State: gang.Missing}
		name := alike.of(m, kept(pod))
		p.Members[name] = append(p.Members[name], m)
		p.MinMember = gang.Sum(p.MinMember, 1)
	}
	unlisted := map[string]int32{}
	for _, r := range g.Roles {
		if n := g.Unlisted[r.Name]; n > 0 && g.Unmade(r.Name) == gang.Missing {
			m := gang.Member{Role: r.Name, Index: int(r.Replicas - 1)}
			unlisted[alike.of(m, w.Virtual(g, m))] += n
		}
	}
	for i := range p.Roles {
		r := &p.Roles[i]
		r.Count = gang.Sum(int32(len(p.Members[r.Name])), unlisted[r.Name])
		r.Min = w.roleMin(g, r.Name)
	}
	p.Shape, p.members = p.shape(alike.names, g, w.tied)
	return p
}

// minMember is how many of the members that have not ended the gang needs.
func minMember(g *gang.Gang, topology gang.Topology) (n int32) {
	if done := g.Count(gang.Succeeded); g.Min > 0 { // as the schedulers have it: members that have ended lower the minimum, but not to none
		n = min(max(1, min(g.Min, g.Total())-done), g.Total()-done-g.Count(gang.NotDue))
	}
	if g.Decl == nil && len(topology.AllRequired()) > 0 {
		n = g.Total() // the domain is for all that Kueue admits, even where members start one by one
		if g.MinMember != nil {
			n = min(*g.MinMember, n)
		}
	}
	return n
}

// unplaced is the pod for which a member needs a place: its own, or the one that replaces that.
func (w *View) unplaced(g *gang.Gang, m gang.Member) *corev1.Pod {
	pod := m.Pod
	if pod == nil || m.State == gang.Failed || m.State == gang.Terminating || m.State == gang.Lost {
		pod = w.Virtual(g, m)
	}
	return w.reassigned(g, m.Role, pod)
}

// roleFinder puts the members of a gang that are alike into one simulated role of its request.
type roleFinder struct {
	view    *View
	request *PlacementRequest
	// names are those of the simulated roles, by what is equal for their members.
	names map[string]string
	// selected are the labels that distinguish members, parts is what the rules of the topology for parts of the gang do by.
	selected sets.Set[string]
	parts    func(metav1.Object) string
	// exclusions are the topology domains that parts of the gang have for themselves.
	exclusions []exclusion
	// podSets is whether the rules for parts are about what Kueue counts together.
	podSets bool
}

// roleFinder adds to a request the rules about the topology domains that parts of the gang have for themselves, and what of them it has not.
func (w *View) roleFinder(g *gang.Gang, p *PlacementRequest) *roleFinder {
	f := &roleFinder{view: w, request: p, names: map[string]string{}, selected: w.selectedLabels(g), podSets: g.Decl == nil && len(p.Topology.Parts) > 0}
	f.exclusions, p.Unmodelled = w.exclusions(g)
	for _, x := range f.exclusions {
		p.Topology.Parts = append(slices.Clip(p.Topology.Parts), x.Rule)
	}
	f.parts = p.Topology.Divide()
	return f
}

// of is the simulated role of a member that needs a place for a pod. It is added to the request if there is none.
func (f *roleFinder) of(m gang.Member, pod *corev1.Pod) string {
	for _, x := range f.exclusions {
		pod = x.applied(pod)
	}
	if f.podSets {
		pod = kueue.InPodSet(m.Role, pod)
	}
	shape := signature(m.Role, pod, f.selected) + f.view.ownClaims(pod) + f.parts(pod)
	name, known := f.names[shape]
	if known {
		return name
	}
	p := f.request
	name = m.Role
	if _, taken := p.Members[name]; taken {
		name = fmt.Sprintf("%s#%d", m.Role, len(f.names)+1)
	}
	f.names[shape], p.Members[name], p.roles[name] = name, nil, m.Role
	p.Roles = append(p.Roles, placement.Role{Name: name, Pod: pod})
	return name
}

// reassigned is the pod of a member whose node is not healthy, and for which Kueue looks for another: without the node.
func (w *View) reassigned(g *gang.Gang, role string, pod *corev1.Pod) *corev1.Pod {
	if pod.Spec.NodeSelector[corev1.LabelHostname] == "" {
		return pod
	}
	wl, r := w.Workload(g.Job), g.RoleByName(role)
	if wl == nil || r == nil {
		return pod
	}
	away := kueue.Unhealthy(wl)
	if len(away) == 0 || !slices.Contains(away, pod.Spec.NodeSelector[corev1.LabelHostname]) {
		return pod
	}
	free, assigned := *pod, kueue.Assigned(wl, &r.Template, pod)
	free.Spec.NodeSelector = maps.Clone(pod.Spec.NodeSelector)
	maps.DeleteFunc(free.Spec.NodeSelector, func(key, _ string) bool { return assigned[key] != "" })
	return &free
}

// kept is the pod of a placeholder without its node.
func kept(p *corev1.Pod) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *p.ObjectMeta.DeepCopy(), Spec: *p.Spec.DeepCopy(), Status: corev1.PodStatus{Phase: corev1.PodPending}}
	pod.Spec.NodeName = ""
	return pod
}

// Leaving are the pods of a gang whose room is free for its members, which come after them: those of members that are being deleted, or whose node is away, and those that
// keep room for members.
func (w *View) Leaving(g *gang.Gang) (pods []*corev1.Pod) {
	pods = slices.Clone(w.Placeholders(g))
	for _, m := range g.Members {
		if m.State == gang.Terminating || m.State == gang.Lost {
			pods = append(pods, m.Pod)
		}
	}
	return pods
}

// Topology is by which node labels members share domains: as what declares the gang has it, or else, while Kueue holds a job, as the members of each role are annotated for
// Kueue, which admits them to one domain. The rules for several roles are about pods with the label of [kueue.InPodSet].
func Topology(g *gang.Gang) gang.Topology {
	if g.Decl != nil {
		return g.Decl.Topology
	}
	if _, queued := kueue.QueueOf(&g.Meta); !queued || !g.Suspended {
		return gang.Topology{}
	}
	if len(g.Roles) != 1 {
		return kueue.TopologyOfRoles(g.Roles)
	}
	t, err := kueue.TopologyOf(&g.Roles[0].Template)
	if err != nil {
		return gang.Topology{} // Kueue does not accept it
	}
	return t
}

// shape is the request's Shape and those of its roles, from the names of its roles by the signature of their members. Rules may select pods of the namespace: what
// they find depends on labels that no signature has, so members with such rules are like no others; nor are those that have to be where others of their gang are, or that
// are tied to their volumes.
func (p PlacementRequest) shape(names map[string]string, g *gang.Gang, tied func(*corev1.Pod) bool) (shape string, roles map[string]string) {
	if len(p.Bound) > 0 && !p.Topology.Empty() || slices.ContainsFunc(p.Roles, func(r placement.Role) bool { return tied(r.Pod) || placement.DependsOnPods(r.Pod) }) {
		return "", nil
	}
	signatures, roles := make(map[string]string, len(names)), make(map[string]string, len(names))
	for signature, name := range names {
		signatures[name] = signature
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d %q %t", p.MinMember, p.Topology.String(), p.KeepDevices)
	if len(p.Bound) > 0 {
		bound := map[string]int{}
		for _, m := range g.Members {
			if m.State == gang.Starting || m.State == gang.Running {
				bound[m.Role]++
			}
		}
		fmt.Fprintf(&b, " %#v", bound)
	}
	for _, r := range p.Roles {
		roles[r.Name] = fmt.Sprintf("%q %s", r.Pod.Namespace, signatures[r.Name])
		fmt.Fprintf(&b, "\n%d %d %q %s", r.Count, r.Min, r.Name, roles[r.Name])
	}
	return b.String(), roles
}

// tied reports whether a pod has a claim of a volume that is made for it, or that not every node reaches.
func (w *View) tied(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Ephemeral != nil || v.PersistentVolumeClaim != nil && w.Cluster().OwnVolume(pod, &v) != ""
	})
}

// hasClaims reports whether a pod has claims of volumes.
func hasClaims(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
}

// roleMin is the minimum that the declaration requires of one role, less the members that have it met already.
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

// signature is equal for members of a role that a scheduler cannot distinguish. A pod that exists and the template that it was made from
// differ in what admission fills in: tolerations of short outages do not count.
func signature(role string, pod *corev1.Pod, selected sets.Set[string]) string {
	pod = &corev1.Pod{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
	var tolerations []corev1.Toleration
	for _, t := range pod.Spec.Tolerations {
		if !shortOutage(t) {
			tolerations = append(tolerations, t)
		}
	}
	pod.Spec.Tolerations = tolerations
	text, err := placement.Signature(pod, selected.Has)
	if err != nil {
		return role + "/" + pod.Name // a spec that does not marshal is like no other
	}
	return role + "/" + text
}

// shortOutage reports whether a toleration is one of those that admission gives every pod for a while.
func shortOutage(t corev1.Toleration) bool {
	return t.Effect == corev1.TaintEffectNoExecute && (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable)
}

// ownClaims distinguishes members that have claims, of volumes or of devices, which may be tied to a node.
func (w *View) ownClaims(pod *corev1.Pod) string {
	if !hasClaims(pod) && len(pod.Spec.ResourceClaims) == 0 {
		return ""
	}
	text, err := w.Cluster().OwnClaims(pod)
	if err != nil {
		return pod.Name
	}
	if text != "" {
		text = "/" + text
	}
	return text
}

// selectedLabels are the keys of the labels by which rules distinguish the members of a gang: those that a rule of a member, or the
// anti-affinity of a pod that has a node, selects by.
func (w *View) selectedLabels(g *gang.Gang) sets.Set[string] {
	keys := w.antiAffinity().Clone()
	for _, pod := range g.Pods() {
		placement.AddSelectedLabels(keys, pod)
	}
	return keys
}

// antiAffinityLabels are the keys by which pods that have a node keep others off it.
func (w *View) antiAffinityLabels() sets.Set[string] {
	selected := func(pods []*corev1.Pod) sets.Set[string] {
		keys := sets.New[string]()
		for _, pod := range pods {
			if pod.Spec.NodeName != "" {
				placement.AddAntiAffinityLabels(keys, pod)
			}
		}
		return keys
	}
	if w.base != nil && len(selected(w.pods().gone)) == 0 {
		return w.base.antiAffinity().Union(selected(w.pods().more))
	}
	return selected(w.Snap.Pods)
}
