package render

import (
	"bytes"
	"math"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	spv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/internal/golden"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/kind/tfjob"
	"github.com/gangctl/gangctl/templates"
)

func quantity(s string) *resource.Quantity {
	q := resource.MustParse(s)
	return &q
}

// spec is the job of the ACK guide: one PS and four workers with two GPUs each. Options change it.
func spec(options ...func(*Spec)) Spec {
	s := Spec{
		Name: "llama", Namespace: "research",
		Roles: []Role{
			{Name: "Chief"},
			{Name: "PS", Replicas: 1, Image: "ps:1", CPU: quantity("1")},
			{Name: "Worker", Replicas: 4, Image: "worker:1", CPU: quantity("2500m"), Memory: quantity("8Gi"), GPUs: 2},
			{Name: "Evaluator"},
		},
		Pod:           Pod{GPUResource: "nvidia.com/gpu", Scheduler: "gang-scheduler"},
		Gang:          GangSpec{Dialect: gang.SchedulerPlugins, MinAvailable: 5},
		RestartPolicy: kubeflowv1.RestartPolicyOnFailure, CleanPodPolicy: kubeflowv1.CleanPodPolicyRunning,
	}
	for _, o := range options {
		o(&s)
	}
	return s
}

func TestGolden(t *testing.T) {
	tests := map[string]func(*Spec){
		"scheduler-plugins": func(*Spec) {},
		"labels":            func(s *Spec) { s.Gang.Dialect = gang.Labels },
		"none":              func(s *Spec) { s.Gang.Dialect, s.Pod.Scheduler = gang.None, "" },
		"elastic":           func(s *Spec) { s.Gang.MinAvailable = 3 },
		"everything": func(s *Spec) {
			s.Roles[0] = Role{Name: "Chief", Replicas: 1, Image: "chief:1", GPUs: 1}
			s.Roles[3] = Role{Name: "Evaluator", Replicas: 1, Image: "eval:1", Memory: quantity("1Gi")}
			s.Pod.GPUResource, s.Gang.MinAvailable = "amd.com/gpu", 7
			s.Pod.Command = []string{"python", "train.py", "--q", `a"b: c # d`, "", "true", "$HOME $(HOME) $$"}
			s.Pod.Env = []corev1.EnvVar{{Name: "Q", Value: "a\"b,c: d # e\n$$(x)"}, {Name: "EMPTY"}, {Name: "YES", Value: "yes"}}
			s.Pod.WorkingDir, s.Pod.PriorityClass = "/work", "high"
			s.RestartPolicy, s.CleanPodPolicy = kubeflowv1.RestartPolicyExitCode, kubeflowv1.CleanPodPolicyAll
			s.Labels, s.Annotations = map[string]string{"team": "vision"}, map[string]string{"note": "a: b"}
			s.CommandLine = "gangctl submit tf llama"
		},
	}
	for name, option := range tests {
		t.Run(name, func(t *testing.T) {
			objects, err := TFJob().Render(templates.TF(), spec(option))
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, filepath.Join("testdata", name+".yaml"), string(manifest(t, objects)))
		})
	}
}

// manifest is what is created, as it is with a job that is stored.
func manifest(t *testing.T, objects *Objects) []byte {
	t.Helper()
	stored := objects.Job.DeepCopy()
	stored.SetUID("6f0b9f3e")
	var docs [][]byte
	for i, u := range objects.All() {
		if i > 0 {
			Own(u, stored)
		}
		doc, err := yaml.Marshal(u.Object)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, doc)
	}
	return bytes.Join(docs, []byte("---\n"))
}

// parts are the job and its group as Go knows them.
func parts(t *testing.T, s Spec) (*kubeflowv1.TFJob, *spv1alpha1.PodGroup) {
	t.Helper()
	objects, err := TFJob().Render(templates.TF(), s)
	if err != nil {
		t.Fatal(err)
	}
	job, err := tfjob.Decode(objects.Job)
	if err != nil {
		t.Fatal(err)
	}
	group, err := schedulerplugins.Decode(objects.Owned[0])
	if err != nil {
		t.Fatal(err)
	}
	return job, group
}

func TestPodGroupAgreesWithPolicy(t *testing.T) {
	for minAvailable := int32(1); minAvailable <= 5; minAvailable++ {
		job, group := parts(t, spec(func(s *Spec) { s.Gang.MinAvailable = minAvailable }))
		policy := job.Spec.RunPolicy.SchedulingPolicy
		if *policy.MinAvailable != minAvailable || group.Spec.MinMember != minAvailable {
			t.Errorf("min %d: policy %d, PodGroup %d", minAvailable, *policy.MinAvailable, group.Spec.MinMember)
		}
		if diff := cmp.Diff(group.Spec.MinResources, corev1.ResourceList(*policy.MinResources)); diff != "" {
			t.Errorf("min %d: minResources differ: %s", minAvailable, diff)
		}
	}
}

func TestGangResources(t *testing.T) {
	tests := []struct {
		minAvailable int32
		cpu, gpus    string
	}{
		{5, "11", "8"}, {4, "8500m", "6"}, {2, "3500m", "2"}, {1, "1", ""},
	}
	for _, tt := range tests {
		_, group := parts(t, spec(func(s *Spec) { s.Gang.MinAvailable = tt.minAvailable }))
		got := group.Spec.MinResources
		gpus, ok := got["nvidia.com/gpu"]
		if got.Cpu().String() != tt.cpu || (ok && gpus.String() != tt.gpus) || (!ok && tt.gpus != "") {
			t.Errorf("min %d: got cpu %s, gpus %s; want %s, %s", tt.minAvailable, got.Cpu(), gpus.String(), tt.cpu, tt.gpus)
		}
	}
}

// Users write any number of replicas. What is allocated does not depend on it, which is measured with a number that a machine can take.
func TestGangResourcesOfAnyNumberOfReplicas(t *testing.T) {
	role := func(name, cpu string, replicas int32) gang.Role {
		r := gang.Role{Name: name, Replicas: replicas}
		r.Template.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}
		return r
	}
	allocated := func(replicas int32) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		gangResources([]gang.Role{role("worker", "1", replicas)}, replicas)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if bytes := allocated(1_000_000); bytes > 1<<20 {
		t.Fatalf("a million replicas take %d bytes", bytes)
	}
	for _, tt := range []struct {
		roles []gang.Role
		min   int32
		want  string
	}{
		{[]gang.Role{role("worker", "1500m", math.MaxInt32)}, math.MaxInt32, "3221225470500m"},
		{[]gang.Role{role("worker", "2", math.MaxInt32), role("ps", "1", math.MaxInt32)}, math.MaxInt32, "2147483647"},
		{[]gang.Role{role("worker", "9P", math.MaxInt32)}, 2, "9223372036854775807m"},
		{[]gang.Role{role("worker", "2", 3), role("none", "1", -1)}, 2, "4"},
	} {
		cpu := gangResources(tt.roles, tt.min)["cpu"]
		if cpu.String() != tt.want {
			t.Errorf("%d of %v: %s cpu, want %s", tt.min, tt.roles, cpu.String(), tt.want)
		}
	}
}

func TestBadPreset(t *testing.T) {
	tests := map[string]string{
		"spec: [":          "preset: error converting YAML to JSON: yaml: line 1: did not find expected node content",
		"spec: {x: 1}":     `preset: error unmarshaling JSON: while decoding JSON: json: unknown field "x"`,
		"spec: {}":         "preset: no role PS in spec.tfReplicaSpecs",
		"kind: TFJob":      "preset: no role PS in spec.tfReplicaSpecs",
		onlyPS("notebook"): "preset: role PS has no container named tensorflow",
	}
	for preset, want := range tests {
		if _, err := TFJob().Render([]byte(preset), spec(func(s *Spec) { s.Roles = s.Roles[1:2] })); err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", preset, err, want)
		}
	}
}

func onlyPS(container string) string {
	return "spec: {tfReplicaSpecs: {PS: {template: {spec: {containers: [{name: " + container + "}]}}}}}"
}

func TestPrune(t *testing.T) {
	got := map[string]any{
		"creationTimestamp": nil, "resources": map[string]any{}, "zero": int64(0), "empty": "",
		"deep": map[string]any{"inner": map[string]any{"nothing": nil}},
		"list": []any{map[string]any{"gone": map[string]any{}, "kept": false}},
	}
	prune(got)
	want := map[string]any{"zero": int64(0), "empty": "", "list": []any{map[string]any{"kept": false}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
