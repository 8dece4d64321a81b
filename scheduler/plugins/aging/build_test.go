package aging

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// aNode has so many cpus.
func aNode(name string, cpus int) *corev1.Node {
	list := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(cpus), resource.DecimalSI), corev1.ResourcePods: resource.MustParse("20")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Capacity: list, Allocatable: list, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// aPod requests so many cpus; node is empty for one that waits.
func aPod(name, node string, cpus int, change ...func(*corev1.Pod)) *corev1.Pod {
	started := metav1.NewTime(noon.Add(-time.Hour))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{NodeName: node, Priority: ptr.To(int32(0)), Containers: []corev1.Container{{
			Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(cpus), resource.DecimalSI)}},
		}}},
	}
	if node != "" {
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &started}
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

// endsIn lets a pod end so long after noon.
func endsIn(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr.To(int64((time.Hour + d) / time.Second)) }
}

// runsFor lets a pod that has not started run so long.
func runsFor(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Annotations = map[string]string{claims.RuntimeAnnotation: d.String()}
	}
}

func startedAt(t time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.StartTime = ptr.To(metav1.NewTime(t)) }
}

func ranked(priority int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Priority = &priority }
}

func cluster(nodes []*corev1.Node, pods ...*corev1.Pod) *placement.Cluster {
	return placement.NewCluster(placement.Objects{Nodes: nodes, Pods: pods})
}

// aGang waits for places for so many members of so many cpus, since noon.
func aGang(name string, members int32, cpus int) Candidate {
	var open []*corev1.Pod
	for i := range members {
		open = append(open, aPod(fmt.Sprintf("%s-%d", name, i), "", cpus))
	}
	return Candidate{
		Group: types.NamespacedName{Namespace: "team", Name: "labels:" + name}, Since: noon, Open: open,
		Members: placement.Gang{Roles: []placement.Role{{Name: "worker", Pod: aPod(name+"-0", "", cpus), Count: members}}},
	}
}

// onNode fills a node with pods of one cpu, the first of which ends first.
func onNode(node string, pods int, change ...func(*corev1.Pod)) (all []*corev1.Pod) {
	for i := range pods {
		all = append(all, aPod(fmt.Sprintf("%s-%d", node, i), node, 1, append([]func(*corev1.Pod){startedAt(noon.Add(time.Duration(i-10) * time.Minute))}, change...)...))
	}
	return all
}
