package placement

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Signature is equal for pods that no rule of a scheduler distinguishes: they can be members of one Role. Labels count only with the keys
// that are selected, those that some rule selects by, because operators number their pods by labels; none where selected is nil. A pod that has claims of its own, made from a
// template, is like others by this; [OwnClaims] distinguishes them.
func Signature(pod *corev1.Pod, selected func(key string) bool) (string, error) {
	spec := &pod.Spec
	rules := corev1.PodSpec{
		NodeSelector: spec.NodeSelector, Affinity: spec.Affinity, Tolerations: spec.Tolerations, Overhead: spec.Overhead,
		TopologySpreadConstraints: spec.TopologySpreadConstraints, ResourceClaims: spec.ResourceClaims, Resources: spec.Resources,
		HostNetwork: spec.HostNetwork, InitContainers: placedContainers(spec.InitContainers), Containers: placedContainers(spec.Containers),
	}
	for _, v := range spec.Volumes {
		if !onEveryNode(v) {
			rules.Volumes = append(rules.Volumes, v)
		}
	}
	labels := map[string]string{}
	for key, value := range pod.Labels {
		if selected != nil && selected(key) {
			labels[key] = value
		}
	}
	text, err := json.Marshal([]any{rules, labels})
	return string(text), err
}

// onEveryNode reports a volume that every node can provide. Each pod has at least one, with a name of its own: the token of its service
// account.
func onEveryNode(v corev1.Volume) bool {
	return v.Projected != nil || v.Secret != nil || v.ConfigMap != nil || v.DownwardAPI != nil || v.EmptyDir != nil || v.HostPath != nil
}

// placedContainers are containers with nothing but what decides their pod's place. A port counts only if it is one of the host.
func placedContainers(containers []corev1.Container) []corev1.Container {
	var out []corev1.Container
	for _, c := range containers {
		placed := corev1.Container{
			RestartPolicy: c.RestartPolicy, Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests, Claims: c.Resources.Claims},
		}
		for _, p := range c.Ports {
			if p.HostPort != 0 {
				placed.Ports = append(placed.Ports, corev1.ContainerPort{HostPort: p.HostPort, HostIP: p.HostIP, Protocol: p.Protocol})
			}
		}
		out = append(out, placed)
	}
	return out
}

// AddSelectedLabels adds the keys of labels by which a pod's rules select pods, itself among them.
func AddSelectedLabels(keys sets.Set[string], pod *corev1.Pod) {
	for _, c := range pod.Spec.TopologySpreadConstraints {
		selectorKeys(c.LabelSelector, keys)
		keys.Insert(c.MatchLabelKeys...)
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		termKeys(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, keys)
	}
	AddAntiAffinityLabels(keys, pod)
}

// AddAntiAffinityLabels adds the keys of labels by which a pod keeps others off its node. They count for every pod that may come there.
func AddAntiAffinityLabels(keys sets.Set[string], pod *corev1.Pod) {
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		termKeys(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, keys)
	}
}

func termKeys(terms []corev1.PodAffinityTerm, keys sets.Set[string]) {
	for _, t := range terms {
		selectorKeys(t.LabelSelector, keys)
		keys.Insert(t.MatchLabelKeys...)
		keys.Insert(t.MismatchLabelKeys...)
	}
}

func selectorKeys(s *metav1.LabelSelector, keys sets.Set[string]) {
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
