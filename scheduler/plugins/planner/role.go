package planner

import (
	"encoding/json"
	"fmt"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/pkg/placement"
)

// party are the members that an attempt is to place, by what they ask for.
type party struct {
	roles   []placement.Role
	members [][]*corev1.Pod // by role, in the order in which they were given
	// social: members want to be with or apart from other pods, or evenly spread; refers: they refer to claims.
	social, refers bool
	// wishes: members prefer some nodes to others.
	wishes bool
}

// partyOf groups members that no rule of the engine tells apart. Labels count only where some rule looks at them, also one of
// the pods on those nodes that have pods with rules about others: operators number their pods by labels.
func partyOf(members []*corev1.Pod, shy []fwk.NodeInfo) (*party, error) {
	p := &party{}
	asked := sets.New[string]()
	for _, m := range members {
		p.look(m)
		asked = asked.Union(labelsAskedFor(m))
	}
	for _, n := range shy {
		for _, info := range n.GetPodsWithRequiredAntiAffinity() {
			asked = asked.Union(labelsAskedFor(info.GetPod()))
		}
	}
	at := map[string]int{}
	for _, m := range members {
		key, err := signature(m, asked)
		if err != nil {
			return nil, fmt.Errorf("compare pod %s/%s: %w", m.Namespace, m.Name, err)
		}
		i, known := at[key]
		if !known {
			i = len(p.roles)
			at[key] = i
			p.roles = append(p.roles, placement.Role{Name: p.name(m), Pod: m})
			p.members = append(p.members, nil)
		}
		p.roles[i].Count++
		p.members[i] = append(p.members[i], m)
	}
	return p, nil
}

// examples are one member of each role.
func (p *party) examples() []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(p.roles))
	for _, r := range p.roles {
		pods = append(pods, r.Pod)
	}
	return pods
}

// look notes what a member asks for that makes a proof harder.
func (p *party) look(pod *corev1.Pod) {
	p.refers = p.refers || len(pod.Spec.ResourceClaims) > 0
	for _, v := range pod.Spec.Volumes {
		p.refers = p.refers || v.PersistentVolumeClaim != nil || v.Ephemeral != nil
	}
	for _, c := range pod.Spec.TopologySpreadConstraints {
		p.social = p.social || c.WhenUnsatisfiable == corev1.DoNotSchedule
		p.wishes = p.wishes || c.WhenUnsatisfiable == corev1.ScheduleAnyway
	}
	a := pod.Spec.Affinity
	if a == nil {
		return
	}
	if a.NodeAffinity != nil {
		p.wishes = p.wishes || len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0
	}
	if a.PodAffinity != nil {
		p.social = p.social || len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
		p.wishes = p.wishes || len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0
	}
	if a.PodAntiAffinity != nil {
		p.wishes = p.wishes || len(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0
	}
}

// name is what a role is called in explanations; roles of the same name are numbered.
func (p *party) name(pod *corev1.Pod) string {
	name := pod.Labels[kubeflowv1.ReplicaTypeLabel]
	if name == "" {
		name = "member"
	}
	for _, r := range p.roles {
		if r.Name == name {
			return fmt.Sprintf("%s#%d", name, len(p.roles)+1)
		}
	}
	return name
}

// labelsAskedFor are the keys of the labels that a pod's rules about other pods look at.
func labelsAskedFor(pod *corev1.Pod) sets.Set[string] {
	keys := sets.New[string]()
	selector := func(s *metav1.LabelSelector) {
		if s == nil {
			return
		}
		for key := range s.MatchLabels {
			keys.Insert(key)
		}
		for _, e := range s.MatchExpressions {
			keys.Insert(e.Key)
		}
	}
	for _, c := range pod.Spec.TopologySpreadConstraints {
		selector(c.LabelSelector)
		keys.Insert(c.MatchLabelKeys...)
	}
	if a := pod.Spec.Affinity; a != nil {
		var terms []corev1.PodAffinityTerm
		if a.PodAffinity != nil {
			terms = append(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		}
		if a.PodAntiAffinity != nil {
			terms = append(terms, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		}
		for _, t := range terms {
			selector(t.LabelSelector)
			keys.Insert(t.MatchLabelKeys...)
			keys.Insert(t.MismatchLabelKeys...)
		}
	}
	return keys
}

// signature is equal for pods that the engine's filters cannot tell apart.
func signature(pod *corev1.Pod, labels sets.Set[string]) (string, error) {
	spec := &pod.Spec
	asks := corev1.PodSpec{
		NodeSelector: spec.NodeSelector, Affinity: spec.Affinity, Tolerations: spec.Tolerations, Overhead: spec.Overhead,
		TopologySpreadConstraints: spec.TopologySpreadConstraints, ResourceClaims: spec.ResourceClaims, Resources: spec.Resources,
		HostNetwork: spec.HostNetwork, SchedulerName: spec.SchedulerName,
		InitContainers: demands(spec.InitContainers), Containers: demands(spec.Containers),
	}
	for _, v := range spec.Volumes {
		if !anywhere(v) {
			asks.Volumes = append(asks.Volumes, v)
		}
	}
	shown := map[string]string{}
	for key := range labels {
		if value, ok := pod.Labels[key]; ok {
			shown[key] = value
		}
	}
	role := pod.Labels[kubeflowv1.ReplicaTypeLabel] // so that explanations can name it
	key, err := json.Marshal([]any{role, asks, shown, ephemeral(pod)})
	return string(key), err
}

// ephemeral is the name of a pod that has claims of its own by that name.
func ephemeral(pod *corev1.Pod) string {
	for _, v := range pod.Spec.Volumes {
		if v.Ephemeral != nil {
			return pod.Name
		}
	}
	for _, c := range pod.Spec.ResourceClaims {
		if c.ResourceClaimTemplateName != nil {
			return pod.Name
		}
	}
	return ""
}

// anywhere tells a volume that every node can provide. Each pod has at least one, with a name of its own: the token of its
// service account.
func anywhere(v corev1.Volume) bool {
	return v.Projected != nil || v.Secret != nil || v.ConfigMap != nil || v.DownwardAPI != nil || v.EmptyDir != nil || v.HostPath != nil
}

// demands are containers with nothing but what they ask of a node.
func demands(containers []corev1.Container) []corev1.Container {
	var out []corev1.Container
	for _, c := range containers {
		d := corev1.Container{RestartPolicy: c.RestartPolicy, Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests, Claims: c.Resources.Claims}}
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				d.Ports = append(d.Ports, corev1.ContainerPort{HostPort: port.HostPort, HostIP: port.HostIP, Protocol: port.Protocol})
			}
		}
		out = append(out, d)
	}
	return out
}
