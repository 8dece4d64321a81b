package placement

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const gpu corev1.ResourceName = "nvidia.com/gpu"

type (
	nodeOption func(*corev1.Node)
	podOption  func(*corev1.Pod)
)

// amounts parses "cpu=4 memory=8Gi gpu=2"; gpu stands for nvidia.com/gpu.
func amounts(pairs ...any) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		name := corev1.ResourceName(pairs[i].(string))
		if name == "gpu" {
			name = gpu
		}
		out[name] = resource.MustParse(fmt.Sprint(pairs[i+1]))
	}
	return out
}

// aNode is a Ready node with 110 pod slots.
func aNode(name string, has corev1.ResourceList, options ...nodeOption) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	n.Status.Allocatable = maps.Clone(has)
	if _, ok := has[corev1.ResourcePods]; !ok {
		n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("110")
	}
	n.Status.Capacity = maps.Clone(n.Status.Allocatable)
	for _, o := range options {
		o(n)
	}
	return n
}

func label(key, value string) nodeOption { return func(n *corev1.Node) { n.Labels[key] = value } }

func taint(key, value string, effect corev1.TaintEffect) nodeOption {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: effect})
	}
}

func cordoned(n *corev1.Node) {
	n.Spec.Unschedulable = true
	taint(corev1.TaintNodeUnschedulable, "", corev1.TaintEffectNoSchedule)(n)
}

func notReady(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }

// aPod is a pod of namespace team with one container.
func aPod(name string, requests corev1.ResourceList, options ...podOption) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{}}}
	p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: requests}}}
	for _, o := range options {
		o(p)
	}
	return p
}

func on(node string) podOption { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func labelled(key, value string) podOption { return func(p *corev1.Pod) { p.Labels[key] = value } }

func selecting(key, value string) podOption {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
}

func tolerating(key string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
}

func hostPort(port int32) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, corev1.ContainerPort{HostPort: port, ContainerPort: port, Protocol: corev1.ProtocolTCP})
	}
}

func term(topology, key, value string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: topology, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}
}

func affinity(p *corev1.Pod) *corev1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	return p.Spec.Affinity
}

func affineTo(topology, key, value string) podOption {
	return func(p *corev1.Pod) {
		a := affinity(p)
		if a.PodAffinity == nil {
			a.PodAffinity = &corev1.PodAffinity{}
		}
		a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, term(topology, key, value))
	}
}

func apart(topology, key, value string) podOption {
	return func(p *corev1.Pod) {
		a := affinity(p)
		if a.PodAntiAffinity == nil {
			a.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, term(topology, key, value))
	}
}

func spread(topology string, skew int32, key, value string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			TopologyKey: topology, MaxSkew: skew, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}},
		})
	}
}

func role(name string, count int32, pod *corev1.Pod) Role {
	return Role{Name: name, Count: count, Pod: pod}
}
