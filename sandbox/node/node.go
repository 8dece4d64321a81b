// Package node makes and changes the simulated nodes of a sandbox. What acts on
// them is package kubelet.
package node

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gangctl/gangctl/sandbox/kubelet"
	"github.com/gangctl/gangctl/sandbox/setting"
)

// podsPerNode is the kubelets' default of maxPods.
const podsPerNode = 110

// Shape is the resources of a node.
type Shape struct {
	CPU, Memory resource.Quantity
	GPUs        int64
	GPUResource string
	Labels      map[string]string
	Taints      []corev1.Taint
}

// ShapeOf is the shape of the nodes that `up` makes.
func ShapeOf(s setting.Settings) Shape {
	return Shape{CPU: s.CPU, Memory: s.Memory, GPUs: s.GPUs, GPUResource: s.GPUResource}
}

// diskPerNode is the room for what containers write.
const diskPerNode = "200Gi"

// Machine is where simulated kubelets answer and what version they report.
type Machine struct {
	KubeletPort       int
	KubernetesVersion string
}

// New returns a node that is ready from its first moment.
func (m Machine) New(name string, s Shape, now time.Time) *corev1.Node {
	size := corev1.ResourceList{
		corev1.ResourceCPU:    s.CPU,
		corev1.ResourceMemory: s.Memory,
		corev1.ResourcePods:   *resource.NewQuantity(podsPerNode, resource.DecimalSI),
		// The launcher of an MPIJob requests 5Gi.
		corev1.ResourceEphemeralStorage: resource.MustParse(diskPerNode),
	}
	if s.GPUs > 0 {
		size[corev1.ResourceName(s.GPUResource)] = *resource.NewQuantity(s.GPUs, resource.DecimalSI)
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(s.Labels)},
		Spec:       corev1.NodeSpec{Taints: s.Taints},
		Status:     corev1.NodeStatus{Capacity: size},
	}
	return m.complete(n, now)
}

// complete fills in what a node lacks to be one of this sandbox.
func (m Machine) complete(n *corev1.Node, now time.Time) *corev1.Node {
	n.TypeMeta = metav1.TypeMeta{}
	n.ResourceVersion, n.UID = "", "" // of the cluster that a file was taken from
	labels := map[string]string{
		corev1.LabelHostname:   n.Name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
		"type":                 "kwok",
	}
	maps.Copy(labels, n.Labels)
	n.Labels = labels
	size, allocatable := n.Status.Capacity, n.Status.Allocatable
	n.Status = kubelet.NodeStatus(n.Name, m.KubeletPort, m.KubernetesVersion, now)
	if size == nil {
		size = allocatable
	}
	if allocatable == nil {
		allocatable = size
	}
	n.Status.Capacity, n.Status.Allocatable = size.DeepCopy(), allocatable.DeepCopy()
	for _, list := range []corev1.ResourceList{n.Status.Capacity, n.Status.Allocatable} {
		if _, ok := list[corev1.ResourcePods]; !ok {
			list[corev1.ResourcePods] = *resource.NewQuantity(podsPerNode, resource.DecimalSI)
		}
	}
	return n
}

// nextNames returns count names node-N after the highest that is taken.
func nextNames(taken []string, count int) []string {
	highest := 0
	for _, name := range taken {
		if text, ok := strings.CutPrefix(name, "node-"); ok {
			if n, err := strconv.Atoi(text); err == nil {
				highest = max(highest, n)
			}
		}
	}
	out := make([]string, 0, count)
	for i := range count {
		out = append(out, fmt.Sprintf("node-%d", highest+1+i))
	}
	return out
}

// Ensure creates the nodes that are missing and gives those that are there the
// requested size. Other nodes are left alone.
func Ensure(ctx context.Context, client kubernetes.Interface, nodes []*corev1.Node) error {
	for _, want := range nodes {
		_, err := client.CoreV1().Nodes().Create(ctx, want, metav1.CreateOptions{})
		if err == nil {
			continue
		}
		if !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create node %s: %w", want.Name, err)
		}
		have, err := client.CoreV1().Nodes().Get(ctx, want.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("get node %s: %w", want.Name, err)
		}
		if apiequality.Semantic.DeepEqual(have.Status.Capacity, want.Status.Capacity) &&
			apiequality.Semantic.DeepEqual(have.Status.Allocatable, want.Status.Allocatable) {
			continue
		}
		have.Status.Capacity, have.Status.Allocatable = want.Status.Capacity, want.Status.Allocatable
		if _, err := client.CoreV1().Nodes().UpdateStatus(ctx, have, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("resize node %s: %w", want.Name, err)
		}
	}
	return nil
}
