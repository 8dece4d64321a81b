package kind

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/gang"
)

func read(t *testing.T, text string) gang.Job {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	r, ok := ByKind(u.GroupVersionKind().GroupKind())
	if !ok {
		t.Fatalf("no reader for %s", u.GetKind())
	}
	job, err := r.Read(u)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func roles(j gang.Job) string {
	var parts []string
	for _, r := range j.Roles {
		parts = append(parts, fmt.Sprintf("%s=%d:%s", r.Name, r.Replicas, r.Main))
	}
	return strings.Join(parts, " ")
}

// own is a pod template with a container.
func own(name string) string { return "template: {spec: {containers: [{name: " + name + "}]}}" }

const container = "template: {spec: {containers: [{name: tensorflow}]}}"

func TestRead(t *testing.T) {
	tests := []struct {
		name, text, roles string
		suspended         bool
		min               int32
		deadline          time.Duration
		problem           string
	}{
		{name: "TFJob v1", roles: "Chief=1:tensorflow PS=2:tensorflow Worker=3:tensorflow", suspended: true, min: 4, deadline: time.Hour, text: `
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: j, namespace: team}
spec:
  runPolicy: {suspend: true, activeDeadlineSeconds: 3600, schedulingPolicy: {minAvailable: 4}}
  tfReplicaSpecs:
    Worker: {replicas: 3, ` + container + `}
    PS: {replicas: 2, ` + container + `}
    Chief: {` + container + `}`},
		{name: "TFJob v1beta2, policy at the top level", roles: "Worker=2:tensorflow", deadline: time.Minute, text: `
apiVersion: kubeflow.org/v1beta2
kind: TFJob
metadata: {name: j, namespace: team}
spec: {activeDeadlineSeconds: 60, tfReplicaSpecs: {Worker: {replicas: 2, ` + container + `}}}`},
		{name: "TFJob v1alpha1, a list of roles", roles: "Master=1:tensorflow PS=2:tensorflow", text: `
apiVersion: kubeflow.org/v1alpha1
kind: TFJob
metadata: {name: j, namespace: team}
spec: {replicaSpecs: [{tfReplicaType: MASTER, replicas: 1, ` + container + `}, {tfReplicaType: PS, replicas: 2, ` + container + `}]}`},
		{name: "XGBoostJob", roles: "Master=1:xgboost Worker=2:xgboost", min: 2, text: `
apiVersion: kubeflow.org/v1
kind: XGBoostJob
metadata: {name: j, namespace: team}
spec:
  runPolicy: {schedulingPolicy: {minAvailable: 2}}
  xgbReplicaSpecs: {Worker: {replicas: 2, ` + own("xgboost") + `}, Master: {` + own("xgboost") + `}}`},
		{name: "PaddleJob, suspended", roles: "Master=1:paddle Worker=2:paddle", suspended: true, deadline: time.Minute, text: `
apiVersion: kubeflow.org/v1
kind: PaddleJob
metadata: {name: j, namespace: team}
spec:
  runPolicy: {suspend: true, activeDeadlineSeconds: 60}
  elasticPolicy: {minReplicas: 1, maxReplicas: 2}
  paddleReplicaSpecs: {Master: {replicas: 1, ` + own("paddle") + `}, Worker: {replicas: 2, ` + own("paddle") + `}}`},
		{name: "JAXJob", roles: "Worker=3:jax", text: `
apiVersion: kubeflow.org/v1
kind: JAXJob
metadata: {name: j, namespace: team}
spec: {jaxReplicaSpecs: {Worker: {replicas: 3, ` + own("jax") + `}}}`},
		{name: "JAXJob of another container", roles: "Worker=1:pytorch", problem: "there is no container named jax in Worker (it has pytorch)", text: `
apiVersion: kubeflow.org/v1
kind: JAXJob
metadata: {name: j, namespace: team}
spec: {jaxReplicaSpecs: {Worker: {` + own("pytorch") + `}}}`},
		{name: "Job of Volcano", roles: "ps=1:main worker=3:main", min: 3, text: `
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: j, namespace: team}
spec: {minAvailable: 3, tasks: [{name: ps, ` + own("main") + `}, {name: worker, replicas: 3, ` + own("main") + `}]}`},
		{name: "wrong container", roles: "Worker=1:main", problem: "there is no container named tensorflow in Worker (it has main)", text: `
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: j, namespace: team}
spec: {tfReplicaSpecs: {Worker: {replicas: 1, template: {spec: {containers: [{name: main}]}}}}}`},
		{name: "no roles", problem: "spec.tfReplicaSpecs is empty", text: "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: j, namespace: team}\nspec: {}\n"},
		{name: "PyTorchJob", roles: "Master=1:pytorch Worker=2:pytorch", text: `
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: j, namespace: team}
spec: {pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch}]}}}, Master: {template: {spec: {containers: [{name: pytorch}]}}}}}`},
		{name: "MPIJob", roles: "Launcher=1:mpi Worker=2:mpi", text: `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: j, namespace: team}
spec: {mpiReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: mpi}]}}}, Launcher: {template: {spec: {containers: [{name: mpi}]}}}}}`},
		{name: "Job", roles: "Worker=2:main", deadline: time.Minute, text: `
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: team}
spec: {parallelism: 4, completions: 5, activeDeadlineSeconds: 60, template: {spec: {containers: [{name: main}]}}}
status: {succeeded: 3}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := read(t, tt.text)
			if got := roles(j); got != tt.roles {
				t.Errorf("roles: got %q, want %q", got, tt.roles)
			}
			if j.Suspended != tt.suspended || j.Deadline != tt.deadline || (j.MinMember != nil) != (tt.min > 0) || tt.min > 0 && *j.MinMember != tt.min {
				t.Errorf("got %+v", j)
			}
			if got := strings.Join(j.Problems, "; "); got != tt.problem {
				t.Errorf("problems: got %q, want %q", got, tt.problem)
			}
		})
	}
}

// Operators from before suspend leave traces in what their API keeps.
func TestUnsuspendable(t *testing.T) {
	for spec, want := range map[string]bool{
		"v1 TFJob {runPolicy: {suspend: false}}":  false,
		"v1 TFJob {runPolicy: {suspend: true}}":   false,
		"v1 TFJob {runPolicy: {backoffLimit: 3}}": true, // the API of the others fills it in
		"v1 TFJob {}":                                  false, // nothing is filled in where there is no run policy
		"v1 TFJob {cleanPodPolicy: None}":              true,
		"v1beta2 TFJob {backoffLimit: 3}":              true,
		"v2beta1 MPIJob {runPolicy: {suspend: false}}": false,
	} {
		fields := strings.SplitN(spec, " ", 3)
		j := read(t, "apiVersion: kubeflow.org/"+fields[0]+"\nkind: "+fields[1]+"\nmetadata: {name: j, namespace: team}\nspec: "+fields[2]+"\n")
		if j.Unsuspendable != want {
			t.Errorf("%s: got %v", spec, j.Unsuspendable)
		}
	}
}

func TestEnd(t *testing.T) {
	j := read(t, `
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: j, namespace: team}
spec: {tfReplicaSpecs: {Worker: {`+container+`}}}
status: {startTime: "2026-11-21T12:00:00Z", conditions: [{type: Running, status: "False"}, {type: Failed, status: "True", reason: TFJobFailed, message: exit 1}]}`)
	if !j.Seen || j.End == nil || !j.End.Failed || j.End.Message != "exit 1" || j.Started.Hour() != 12 {
		t.Errorf("got %+v", j)
	}
}

// Labels of every generation of operators.
func TestPlaceOf(t *testing.T) {
	tests := []struct {
		kind   string
		labels map[string]string
		want   gang.RoleIndex
	}{
		{"TFJob", map[string]string{"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "2"}, gang.RoleIndex{Role: "worker", Index: 2}},
		{"TFJob", map[string]string{"replica-type": "ps", "replica-index": "1"}, gang.RoleIndex{Role: "ps", Index: 1}},
		{"TFJob", map[string]string{"tf-replica-type": "worker", "tf-replica-index": "0"}, gang.RoleIndex{Role: "worker"}},
		{"TFJob", map[string]string{"job_type": "MASTER", "task_index": "0"}, gang.RoleIndex{Role: "master"}},
		{"PyTorchJob", map[string]string{"pytorch-replica-type": "worker", "pytorch-replica-index": "3"}, gang.RoleIndex{Role: "worker", Index: 3}},
		{"MPIJob", map[string]string{"training.kubeflow.org/job-role": "launcher"}, gang.RoleIndex{Role: "launcher"}},
		{"XGBoostJob", map[string]string{"training.kubeflow.org/replica-type": "master", "training.kubeflow.org/replica-index": "0"}, gang.RoleIndex{Role: "master"}},
		{"Job", map[string]string{"batch.kubernetes.io/job-completion-index": "4"}, gang.RoleIndex{Role: "worker", Index: 4}},
	}
	for _, tt := range tests {
		for _, r := range Readers() {
			if r.Title() != tt.kind {
				continue
			}
			got, ok := r.RoleIndexOf(&gang.Job{}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: tt.labels}})
			if !ok || got != tt.want {
				t.Errorf("%s %v: got %v %v", tt.kind, tt.labels, got, ok)
			}
			if _, ok := r.RoleIndexOf(&gang.Job{}, &corev1.Pod{}); ok {
				t.Errorf("%s: a pod without labels has a place", tt.kind)
			}
		}
	}
}

func TestByName(t *testing.T) {
	for name, kind := range map[string]string{"tf": "TFJob", "TFJobs": "TFJob", "pytorch": "PyTorchJob", "mpijob": "MPIJob", "jobset": "JobSet", "js": "JobSet", "paddle": "PaddleJob", "xgboostjobs": "XGBoostJob", "jax": "JAXJob", "vcjob": "Job", "batchjob": "Job"} {
		if r, ok := ByName(name); !ok || r.Kind != kind {
			t.Errorf("%s: got %s", name, r.Kind)
		}
	}
	for _, name := range []string{"pod", "job", "", "tfjob.example.com", "tfjob.", ".kubeflow.org"} {
		if r, ok := ByName(name); ok {
			t.Errorf("%q is %s", name, r.Kind)
		}
	}
	for _, r := range Readers() { // as they are printed
		job := gang.Job{Kind: r.WithVersion(r.Versions[0]), Meta: metav1.ObjectMeta{Name: "llama"}}
		printed, _, _ := strings.Cut(job.Ref(), "/")
		if got, ok := ByName(printed); !ok || got.GroupKind != r.GroupKind {
			t.Errorf("%s: got %s", printed, got.Kind)
		}
	}
}

// A controller acts on a job that names none, or it, and on no other.
func TestManagedBy(t *testing.T) {
	for _, r := range Readers() {
		job := &unstructured.Unstructured{Object: map[string]any{}}
		by := func(name string, field ...string) (string, string) {
			if err := unstructured.SetNestedField(job.Object, name, field...); err != nil {
				t.Fatal(err)
			}
			return r.Controller.ManagedBy(job)
		}
		if other, field := r.Controller.ManagedBy(job); other+field != "" {
			t.Errorf("%s: %s is %s", r.Kind, field, other)
		}
		for _, own := range r.Controller.ManagedAs {
			if other, field := by(own, "spec", "managedBy"); other+field != "" {
				t.Errorf("%s: %s is %s", r.Kind, field, other)
			}
		}
		const elsewhere = "kueue.x-k8s.io/multikueue"
		if other, field := by(elsewhere, "spec", "managedBy"); other != elsewhere || field != "spec.managedBy" {
			t.Errorf("%s: %s is %s", r.Kind, field, other)
		}
		if other, field := by(elsewhere, "spec", "runPolicy", "managedBy"); other != elsewhere || field != "spec.runPolicy.managedBy" {
			t.Errorf("%s: %s is %s", r.Kind, field, other)
		}
	}
}
