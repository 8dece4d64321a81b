package preemption

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/placement"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func cpus(n int) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(n), resource.DecimalSI)}
}

// aNode has so many cpus.
func aNode(name string, n int) *corev1.Node {
	list := cpus(n)
	list[corev1.ResourcePods] = resource.MustParse("50")
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Capacity: list, Allocatable: list, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// aPod requests so many cpus; node is empty for one that waits.
func aPod(name, node string, n int, change ...func(*corev1.Pod)) *corev1.Pod {
	var priority int32
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon), Labels: map[string]string{}},
		Spec: corev1.PodSpec{NodeName: node, Priority: &priority, Containers: []corev1.Container{{
			Name: "c", Resources: corev1.ResourceRequirements{Requests: cpus(n)},
		}}},
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

func ranked(priority int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Priority = &priority }
}

// started lets a pod start so many minutes after noon.
func started(minutes int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		t := metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute))
		p.Status.StartTime = &t
	}
}

// in makes a pod a member of a gang with a minimum, see gangs.
func in(gang string, minimum int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels["gang"] = gang
		p.Annotations = map[string]string{"min": fmt.Sprint(minimum)}
	}
}

// guarded lets a budget named after it select a pod.
func guarded(budget string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels["budget"] = budget }
}

func budget(name string, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"budget": name}}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}
}

// gangs reads what in wrote.
func gangs(pod *corev1.Pod) (Membership, bool) {
	m := Membership{Gang: pod.Labels["gang"], Priority: *pod.Spec.Priority}
	_, _ = fmt.Sscan(pod.Annotations["min"], &m.Min)
	return m, m.Gang != ""
}

// newQuery is about so many members of so many cpus and priority 100.
func newQuery(nodes []*corev1.Node, running []*corev1.Pod, members int32, n int, budgets ...*policyv1.PodDisruptionBudget) Query {
	return Query{
		Cluster:    placement.NewCluster(placement.Objects{Nodes: nodes, Pods: running}),
		Gang:       placement.Gang{Roles: []placement.Role{{Name: "worker", Pod: aPod("p", "", n, ranked(100)), Count: members}}},
		Candidates: Collect(running, slices.Values(running), gangs, 100),
		Budgets:    budgets,
	}
}

// crowded are nodes of ten CPUs, each full of pods of one.
func crowded(size int) (nodes []*corev1.Node, running []*corev1.Pod) {
	for n := range size {
		node := fmt.Sprintf("n%04d", n)
		nodes = append(nodes, aNode(node, 10))
		for i := range 10 {
			running = append(running, aPod(fmt.Sprintf("%s-%d", node, i), node, 1, started(n*10+i)))
		}
	}
	return nodes, running
}
