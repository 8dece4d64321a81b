package stages_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/gang"
)

func role(name, main string, containers ...corev1.Container) gang.Role {
	r := gang.Role{Name: name, Main: main}
	r.Template.Spec.Containers = containers
	return r
}

func container(name string, requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

// The keys of a change are part of the interface: programs read them.
func TestPatchKey(t *testing.T) {
	gpus := clustertest.List("nvidia.com/gpu", "8")
	worker := role("Worker", "tensorflow", container("tensorflow", gpus, gpus), container("side", nil, nil))
	rdma := role("PS", "ps", container("ps", clustertest.List("rdma/hca", "1"), nil))
	tests := []struct {
		role      gang.Role
		container string
		name      corev1.ResourceName
		want      string
	}{
		{worker, "tensorflow", "cpu", "Worker.cpu"},
		{worker, "tensorflow", "nvidia.com/gpu", "Worker.gpu"},
		{worker, "side", "memory", "Worker.side.memory"},
		{worker, "side", "nvidia.com/gpu", "Worker.side.gpu"},
		{worker, "tensorflow", "ephemeral-storage", "Worker.ephemeral-storage"},
		{rdma, "ps", "rdma/hca", "PS.gpu"}, // the device that the role requests, whatever it is
		{rdma, "ps", "amd.com/gpu", "PS.gpu"},
	}
	for _, tt := range tests {
		if got := patch.Key(tt.role, tt.container, tt.name); got != tt.want {
			t.Errorf("%s %s: got %s, want %s", tt.container, tt.name, got, tt.want)
		}
	}
}

func TestLower(t *testing.T) {
	list := clustertest.List
	tests := []struct {
		name             string
		requests, limits corev1.ResourceList
		resource         corev1.ResourceName
		to               string
		request, limit   string
	}{
		{"a request alone", list("cpu", "8"), nil, "cpu", "4", "4", "0"},
		{"a limit that is the request", list("cpu", "8"), list("cpu", "8"), "cpu", "4", "4", "4"},
		{"a limit above the request stays", list("memory", "8Gi"), list("memory", "16Gi"), "memory", "4Gi", "4Gi", "16Gi"},
		{"a limit stands for the request", nil, list("cpu", "8"), "cpu", "4", "4", "4"},
		{"devices have the same of both", list("nvidia.com/gpu", "8"), list("nvidia.com/gpu", "8"), "nvidia.com/gpu", "2", "2", "2"},
	}
	for _, tt := range tests {
		r := role("Worker", "main", container("other", list("cpu", "64"), nil), container("main", tt.requests.DeepCopy(), tt.limits.DeepCopy()))
		patch.Lower(&r, "main", tt.resource, resource.MustParse(tt.to))
		got := r.Template.Spec.Containers[1].Resources
		request, limit := got.Requests[tt.resource], got.Limits[tt.resource]
		if request.Cmp(resource.MustParse(tt.request)) != 0 || limit.Cmp(resource.MustParse(tt.limit)) != 0 {
			t.Errorf("%s: got request %s, limit %s", tt.name, request.String(), limit.String())
		}
		if other := r.Template.Spec.Containers[0].Resources.Requests["cpu"]; other.Value() != 64 {
			t.Errorf("%s: another container was changed", tt.name)
		}
	}
}
