package enginetest

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/internal/poll"
)

// groupLabel keeps the gang of a pod where nothing takes it away.
const groupLabel = "test/group"

// Node returns a node of so many CPUs.
func Node(name string, cpus int64) *corev1.Node {
	list := corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(cpus, resource.DecimalSI), corev1.ResourcePods: resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Capacity: list, Allocatable: list, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// Pod returns a pod of one CPU and priority 0. Group is the gang that it is a
// member of; empty for none.
func Pod(name, group string, change ...func(*corev1.Pod)) *corev1.Pod {
	var priority int32
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.Now()},
		Spec: corev1.PodSpec{
			SchedulerName: Profile, Priority: &priority,
			Containers: []corev1.Container{{
				Name: "main", Image: "x",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
			}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if group != "" {
		virtualName := "labels:" + group
		pod.Labels = map[string]string{groupLabel: virtualName}
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &virtualName}
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

// On puts a pod on a node from the start.
func On(node string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.NodeName = node }
}

// Priority gives a pod a priority.
func Priority(priority int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.Priority = &priority }
}

// CPUs sets the CPU request of a pod.
func CPUs(n int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI)}
	}
}

// Create creates nodes and pods.
func (c *Cluster) Create(objects ...any) {
	c.t.Helper()
	ctx := context.Background()
	for _, object := range objects {
		var err error
		switch o := object.(type) {
		case *corev1.Node:
			_, err = c.Client.CoreV1().Nodes().Create(ctx, o, metav1.CreateOptions{})
		case *corev1.Pod:
			_, err = c.Client.CoreV1().Pods(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
		default:
			c.t.Fatalf("cannot create a %T", object)
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

// Delete removes a pod at once.
func (c *Cluster) Delete(name string) {
	c.t.Helper()
	if err := c.Client.CoreV1().Pods(Namespace).Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// NodeOf returns where a pod is; empty for nowhere.
func (c *Cluster) NodeOf(name string) string {
	c.t.Helper()
	pod, err := c.Client.CoreV1().Pods(Namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		c.t.Fatal(err)
	}
	if err != nil {
		return ""
	}
	return pod.Spec.NodeName
}

// Placed counts the pods, of those named, that have a node.
func (c *Cluster) Placed(names ...string) (n int) {
	c.t.Helper()
	for _, name := range names {
		if c.NodeOf(name) != "" {
			n++
		}
	}
	return n
}

// WaitPlaced waits until all pods have a node.
func (c *Cluster) WaitPlaced(names ...string) {
	c.t.Helper()
	c.Wait("all have nodes", func() bool { return c.Placed(names...) == len(names) })
}

// Wait polls a condition, and fails the test if it does not come true.
func (c *Cluster) Wait(what string, done func() bool) {
	c.t.Helper()
	poll.Until(c.t, what, done)
}
