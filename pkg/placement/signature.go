package placement

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

// Signature is equal for pods that no rule of a scheduler distinguishes: they can be members of one Role. Labels count only with the keys
// that are selected, those that some rule selects by, because operators number their pods by labels; none where selected is nil. A pod that has claims of volumes, or of its
// own, is like others by this; [OwnClaims] distinguishes them.
func Signature(pod *corev1.Pod, selected func(key string) bool) (string, error) {
	spec := &pod.Spec
	rules := corev1.PodSpec{
		NodeSelector: spec.NodeSelector, Affinity: spec.Affinity, Tolerations: spec.Tolerations, Overhead: spec.Overhead,
		TopologySpreadConstraints: spec.TopologySpreadConstraints, ResourceClaims: spec.ResourceClaims, Resources: spec.Resources,
		HostNetwork: spec.HostNetwork, InitContainers: placedContainers(spec.InitContainers), Containers: placedContainers(spec.Containers),
		Volumes: placedVolumes(spec.Volumes),
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

// Alike reports whether two pods have the same [Signature], but for how amounts are written. To compare them takes a tenth of the time.
func Alike(a, b *corev1.Pod, selected func(key string) bool) bool {
	x, y := &a.Spec, &b.Spec
	return x.HostNetwork == y.HostNetwork && maps.Equal(x.NodeSelector, y.NodeSelector) && sameLabels(a.Labels, b.Labels, selected) &&
		slices.EqualFunc(x.Containers, y.Containers, sameContainer) && slices.EqualFunc(x.InitContainers, y.InitContainers, sameContainer) &&
		slices.EqualFunc(x.Tolerations, y.Tolerations, sameToleration) && sameAmounts(x.Overhead, y.Overhead) && same(x.Affinity, y.Affinity) && same(x.Resources, y.Resources) &&
		sameList(x.TopologySpreadConstraints, y.TopologySpreadConstraints) && sameList(x.ResourceClaims, y.ResourceClaims) && sameList(placedVolumes(x.Volumes), placedVolumes(y.Volumes))
}

func same[T any](a, b *T) bool {
	return a == b || a != nil && b != nil && equality.Semantic.DeepEqual(a, b)
}

func sameList[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || equality.Semantic.DeepEqual(a, b))
}

func sameLabels(a, b map[string]string, selected func(key string) bool) bool {
	if selected == nil {
		return true
	}
	for key, value := range a {
		if other, ok := b[key]; (!ok || other != value) && selected(key) {
			return false
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok && selected(key) {
			return false
		}
	}
	return true
}

func sameAmounts(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

func sameToleration(a, b corev1.Toleration) bool {
	seconds := ptr.Equal(a.TolerationSeconds, b.TolerationSeconds)
	a.TolerationSeconds, b.TolerationSeconds = nil, nil
	return seconds && a == b
}

// sameContainer compares what [placedContainers] leaves of containers.
func sameContainer(a, b corev1.Container) bool {
	return ptr.Equal(a.RestartPolicy, b.RestartPolicy) && sameAmounts(a.Resources.Requests, b.Resources.Requests) &&
		slices.Equal(a.Resources.Claims, b.Resources.Claims) && slices.Equal(hostPorts(a.Ports), hostPorts(b.Ports))
}

// placedVolumes are those that not every node can provide, but for claims that are named.
func placedVolumes(volumes []corev1.Volume) (out []corev1.Volume) {
	for i := range volumes {
		if !onEveryNode(&volumes[i]) && volumes[i].PersistentVolumeClaim == nil {
			out = append(out, volumes[i])
		}
	}
	return out
}

// onEveryNode reports a volume that every node can provide. Each pod has at least one, with a name of its own: the token of its service
// account.
func onEveryNode(v *corev1.Volume) bool {
	return v.Projected != nil || v.Secret != nil || v.ConfigMap != nil || v.DownwardAPI != nil || v.EmptyDir != nil || v.HostPath != nil
}

// placedContainers are containers with nothing but what decides their pod's place. A port counts only if it is one of the host.
func placedContainers(containers []corev1.Container) []corev1.Container {
	var out []corev1.Container
	for _, c := range containers {
		out = append(out, corev1.Container{
			RestartPolicy: c.RestartPolicy, Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests, Claims: c.Resources.Claims}, Ports: hostPorts(c.Ports),
		})
	}
	return out
}

func hostPorts(ports []corev1.ContainerPort) (out []corev1.ContainerPort) {
	for _, p := range ports {
		if p.HostPort != 0 {
			out = append(out, corev1.ContainerPort{HostPort: p.HostPort, HostIP: p.HostIP, Protocol: p.Protocol})
		}
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
