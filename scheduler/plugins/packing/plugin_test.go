package packing

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func resources(amounts ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(amounts); i += 2 {
		out[corev1.ResourceName(amounts[i])] = resource.MustParse(amounts[i+1])
	}
	return out
}

func pod(gang string, amounts ...string) *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: resources(amounts...)}}}}}
	if gang != "" {
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &gang}
	}
	return p
}

// node is a node with pods on it.
func node(has corev1.ResourceList, pods ...*corev1.Pod) fwk.NodeInfo {
	n := framework.NewNodeInfo(pods...)
	n.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Allocatable: has}})
	return n
}

func TestScore(t *testing.T) {
	machine := resources("cpu", "8", "memory", "8Gi")
	gpus := resources("cpu", "8", "memory", "8Gi", "nvidia.com/gpu", "4")
	used := func(n string) *corev1.Pod { return pod("", "nvidia.com/gpu", n) }
	for _, c := range []struct {
		name string
		args string
		pod  *corev1.Pod
		node fwk.NodeInfo
		want int64
	}{
		{"a GPU of an empty node", "", pod("", "nvidia.com/gpu", "1"), node(gpus), 20},
		{"a GPU of a node in use", "", pod("", "nvidia.com/gpu", "1"), node(gpus, used("2")), 60},
		{"the last GPU", "", pod("", "nvidia.com/gpu", "1"), node(gpus, used("3")), 80},
		{"the last GPU, next to a sibling", "", pod("g", "nvidia.com/gpu", "1"), node(gpus, pod("g", "nvidia.com/gpu", "3")), 100},
		{"a GPU next to another gang", "", pod("g", "nvidia.com/gpu", "1"), node(gpus, pod("h", "nvidia.com/gpu", "1")), 40},
		{"no GPU, on a node with GPUs", "", pod("", "cpu", "1"), node(gpus), 0},
		{"no GPU, on a node with GPUs that are all in use", "", pod("", "cpu", "1"), node(gpus, used("4")), 0},
		{"no GPU, on a node without, full", "", pod("", "cpu", "1"), node(machine, pod("", "cpu", "6")), 80},
		{"no GPU, on a node without, empty", "", pod("", "cpu", "1"), node(machine), 80},
		{"a member without GPU, on an empty node", "", pod("g", "cpu", "4", "memory", "2Gi"), node(machine), 30 + 18},
		{"a member without GPU, on a fuller node", "", pod("g", "cpu", "4", "memory", "2Gi"), node(machine, pod("", "cpu", "4", "memory", "4Gi")), 30 + 43},
		{"a member without GPU, next to a sibling on a node with GPUs", "", pod("g", "cpu", "1"), node(gpus, pod("g", "nvidia.com/gpu", "1")), 20},
		{"only what is configured as scarce counts", `{"accelerators":["amd.com/gpu"]}`, pod("", "cpu", "1"), node(gpus), 80},
		{"more than there is", "", pod("", "nvidia.com/gpu", "8"), node(gpus), 80},
	} {
		t.Run(c.name, func(t *testing.T) {
			made, err := NewCounters().NewPlugin(t.Context(), &runtime.Unknown{Raw: []byte(c.args), ContentType: runtime.ContentTypeJSON}, nil)
			if err != nil {
				t.Fatal(err)
			}
			p := made.(*Plugin)
			state := framework.NewCycleState()
			if status := p.PreScore(context.Background(), state, c.pod, nil); !status.IsSuccess() {
				t.Fatal(status)
			}
			got, status := p.Score(context.Background(), state, c.pod, c.node)
			if !status.IsSuccess() || got != c.want {
				t.Errorf("score %d, %v; want %d", got, status, c.want)
			}
		})
	}
}

func TestArgs(t *testing.T) {
	for args, want := range map[string]string{
		`{"accelerators":["nvidia.com/gpu","cpu"]}`:            "args.accelerators[1]",
		`{"accelerators":["nvidia.com/gpu","nvidia.com/gpu"]}`: "twice",
		`{"weight":2}`: "unknown field",
	} {
		_, err := NewCounters().NewPlugin(t.Context(), &runtime.Unknown{Raw: []byte(args), ContentType: runtime.ContentTypeJSON}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not name %s", args, err, want)
		}
	}
}
