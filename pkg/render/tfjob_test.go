package render

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/templates"
)

var update = flag.Bool("update", false, "write the golden files")

func quantity(s string) *resource.Quantity {
	q := resource.MustParse(s)
	return &q
}

// spec is the job of the ACK guide: one PS and four workers with two GPUs each. Options change it.
func spec(options ...func(*Spec)) Spec {
	s := Spec{
		Name: "llama", Namespace: "research",
		Roles: []Role{
			{Type: kubeflowv1.TFJobReplicaTypeChief},
			{Type: kubeflowv1.TFJobReplicaTypePS, Replicas: 1, Image: "ps:1", CPU: quantity("1")},
			{Type: kubeflowv1.TFJobReplicaTypeWorker, Replicas: 4, Image: "worker:1", CPU: quantity("2500m"), Memory: quantity("8Gi"), GPUs: 2},
			{Type: kubeflowv1.TFJobReplicaTypeEval},
		},
		GPUResource:   "nvidia.com/gpu",
		RestartPolicy: kubeflowv1.RestartPolicyOnFailure, CleanPodPolicy: kubeflowv1.CleanPodPolicyRunning,
		Scheduler: "gang-scheduler", Dialect: gang.SchedulerPlugins, MinAvailable: 5,
	}
	for _, o := range options {
		o(&s)
	}
	return s
}

func TestGolden(t *testing.T) {
	tests := map[string]func(*Spec){
		"scheduler-plugins": func(*Spec) {},
		"labels":            func(s *Spec) { s.Dialect = gang.Labels },
		"none":              func(s *Spec) { s.Dialect, s.Scheduler = NoGang, "" },
		"elastic":           func(s *Spec) { s.MinAvailable = 3 },
		"everything": func(s *Spec) {
			s.Roles[0] = Role{Type: kubeflowv1.TFJobReplicaTypeChief, Replicas: 1, Image: "chief:1", GPUs: 1}
			s.Roles[3] = Role{Type: kubeflowv1.TFJobReplicaTypeEval, Replicas: 1, Image: "eval:1", Memory: quantity("1Gi")}
			s.GPUResource, s.MinAvailable = "amd.com/gpu", 7
			s.Command = []string{"python", "train.py", "--q", `a"b: c # d`, "", "true", "$HOME $(HOME) $$"}
			s.Env = []corev1.EnvVar{{Name: "Q", Value: "a\"b,c: d # e\n$$(x)"}, {Name: "EMPTY"}, {Name: "YES", Value: "yes"}}
			s.WorkingDir, s.PriorityClass = "/work", "high"
			s.RestartPolicy, s.CleanPodPolicy = kubeflowv1.RestartPolicyExitCode, kubeflowv1.CleanPodPolicyAll
			s.Labels, s.Annotations = map[string]string{"team": "vision"}, map[string]string{"note": "a: b"}
			s.CommandLine = "gangctl submit tf llama"
		},
	}
	for name, option := range tests {
		t.Run(name, func(t *testing.T) {
			objects, err := TFJob(templates.TF(), spec(option))
			if err != nil {
				t.Fatal(err)
			}
			got := manifest(t, objects)
			golden := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("run with -update to accept (-want +got):\n%s", diff)
			}
		})
	}
}

func manifest(t *testing.T, objects *Objects) []byte {
	t.Helper()
	all := []runtime.Object{objects.Job}
	if objects.PodGroup != nil {
		Own(objects.PodGroup, &metav1.ObjectMeta{Name: objects.Job.Name, UID: "6f0b9f3e"})
		all = append(all, objects.PodGroup)
	}
	var docs [][]byte
	for _, obj := range all {
		u, err := Unstructured(obj)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := yaml.Marshal(u.Object)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, doc)
	}
	return bytes.Join(docs, []byte("---\n"))
}

func TestPodGroupAgreesWithPolicy(t *testing.T) {
	for minAvailable := int32(1); minAvailable <= 5; minAvailable++ {
		objects, err := TFJob(templates.TF(), spec(func(s *Spec) { s.MinAvailable = minAvailable }))
		if err != nil {
			t.Fatal(err)
		}
		policy := objects.Job.Spec.RunPolicy.SchedulingPolicy
		if *policy.MinAvailable != minAvailable || objects.PodGroup.Spec.MinMember != minAvailable {
			t.Errorf("min %d: policy %d, PodGroup %d", minAvailable, *policy.MinAvailable, objects.PodGroup.Spec.MinMember)
		}
		if diff := cmp.Diff(objects.PodGroup.Spec.MinResources, corev1.ResourceList(*policy.MinResources)); diff != "" {
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
		objects, err := TFJob(templates.TF(), spec(func(s *Spec) { s.MinAvailable = tt.minAvailable }))
		if err != nil {
			t.Fatal(err)
		}
		got := objects.PodGroup.Spec.MinResources
		gpus, ok := got["nvidia.com/gpu"]
		if got.Cpu().String() != tt.cpu || (ok && gpus.String() != tt.gpus) || (!ok && tt.gpus != "") {
			t.Errorf("min %d: got cpu %s, gpus %s; want %s, %s", tt.minAvailable, got.Cpu(), gpus.String(), tt.cpu, tt.gpus)
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
		if _, err := TFJob([]byte(preset), spec()); err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", preset, err, want)
		}
	}
}

func onlyPS(container string) string {
	return "spec: {tfReplicaSpecs: {PS: {template: {spec: {containers: [{name: " + container + "}]}}}}}"
}
