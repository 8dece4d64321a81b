package stages

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
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
func TestTrimKey(t *testing.T) {
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
		{rdma, "ps", "rdma/hca", "PS.gpu"}, // the device that the role asks for, whatever it is
		{rdma, "ps", "amd.com/gpu", "PS.gpu"},
	}
	for _, tt := range tests {
		if got := TrimKey(tt.role, tt.container, tt.name); got != tt.want {
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
		Lower(&r, "main", tt.resource, resource.MustParse(tt.to))
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

func TestTolerates(t *testing.T) {
	taint := corev1.Taint{Key: "dedicated", Value: "team", Effect: corev1.TaintEffectNoSchedule}
	exists := corev1.TolerationOpExists
	tests := []struct {
		toleration corev1.Toleration
		want       bool
		text       string
	}{
		{corev1.Toleration{Key: "dedicated", Value: "team"}, true, "dedicated=team"},
		{corev1.Toleration{Key: "dedicated", Value: "team", Effect: corev1.TaintEffectNoSchedule}, true, "dedicated=team:NoSchedule"},
		{corev1.Toleration{Key: "dedicated", Value: "team", Effect: corev1.TaintEffectNoExecute}, false, "dedicated=team:NoExecute"},
		{corev1.Toleration{Key: "dedicated", Value: "taem"}, false, "dedicated=taem"},
		{corev1.Toleration{Key: "dedicated", Operator: exists}, true, "dedicated"},
		{corev1.Toleration{Operator: exists}, true, ""},
		{corev1.Toleration{}, false, ""},
		{corev1.Toleration{Key: "other", Operator: exists}, false, "other"},
	}
	for _, tt := range tests {
		if got := tolerates(tt.toleration, taint); got != tt.want || tolerationText(tt.toleration) != tt.text {
			t.Errorf("%+v: got %v %q", tt.toleration, got, tolerationText(tt.toleration))
		}
	}
	if got := taintText(taint); got != "dedicated=team:NoSchedule" {
		t.Errorf("got %s", got)
	}
}

// What a pod asks of its node's labels, in the words of the answer.
func TestAsked(t *testing.T) {
	spec := corev1.PodSpec{NodeSelector: map[string]string{"disk": "ssd", "class": "h100"}}
	if got := asked(spec); got != "class=h100, disk=ssd" {
		t.Errorf("got %s", got)
	}
	need := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	spec.NodeSelector = nil
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{need("zone", corev1.NodeSelectorOpIn, "z1", "z2"), need("spot", corev1.NodeSelectorOpDoesNotExist), need("gen", corev1.NodeSelectorOpGt, "8")}},
		{MatchExpressions: []corev1.NodeSelectorRequirement{need("class", corev1.NodeSelectorOpNotIn, "k80"), need("nvlink", corev1.NodeSelectorOpExists), need("age", corev1.NodeSelectorOpLt, "3")},
			MatchFields: []corev1.NodeSelectorRequirement{need("metadata.name", corev1.NodeSelectorOpIn, "n1")}},
	}}}}
	if got, want := asked(spec), "zone=z1|z2 and !spot and gen>8 or class!=k80 and nvlink and age<3 and metadata.name=n1"; got != want {
		t.Errorf("got %s", got)
	}
	if got := wants(spec); len(got) != 0 {
		t.Errorf("terms are alternatives: none is a must, got %v", got)
	}
	terms := &spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if *terms = (*terms)[:1]; len(wants(spec)) != 1 || wants(spec)[0].String() != "zone=z1|z2" {
		t.Errorf("got %v", wants(spec))
	}
}

func TestRank(t *testing.T) {
	order := []string{"FAILED", "DEGRADED", "BLOCKED", "WAITING", "UNKNOWN", "FITS_NOW"}
	for i := 1; i < len(order); i++ {
		if a, b := order[i-1], order[i]; rank(answer.Verdict(a)) >= rank(answer.Verdict(b)) {
			t.Errorf("%s does not come before %s", a, b)
		}
	}
	if rank(answer.Verdict("STARTING")) != rank(answer.Verdict("WAITING")) {
		t.Error("what starts passes by itself, as what waits does")
	}
}
