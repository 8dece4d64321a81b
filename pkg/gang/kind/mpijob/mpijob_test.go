package mpijob_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/mpijob"
)

const role, index = "training.kubeflow.org/replica-type", "training.kubeflow.org/replica-index"

// Where the launcher works too, the MPI Operator labels it as worker 0, and the first worker by name as the next. Jobs of older releases have the
// same numbers in both.
func TestRoleIndexOf(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pod    string
		works  bool
		labels map[string]string
		want   gang.RoleIndex
		ok     bool
	}{
		{"a worker", "horo-worker-1", false, map[string]string{role: "worker", index: "1"}, gang.RoleIndex{Role: "worker", Index: 1}, true},
		{"a worker beside a launcher that works", "horo-worker-0", true, map[string]string{role: "worker", index: "1"}, gang.RoleIndex{Role: "worker"}, true},
		{"a worker that an older release labelled", "horo-worker-1", true, map[string]string{role: "worker", index: "1"}, gang.RoleIndex{Role: "worker", Index: 1}, true},
		{"a worker without an index", "horo-worker-1", false, map[string]string{"training.kubeflow.org/job-role": "worker"}, gang.RoleIndex{Role: "worker", Index: 1}, true},
		{"of another name", "other", true, map[string]string{role: "worker", index: "2"}, gang.RoleIndex{Role: "worker", Index: 1}, true},
		{"of another name, and before the first", "other", true, map[string]string{role: "worker", index: "0"}, gang.RoleIndex{Role: "worker", Index: -1}, false},
		{"a name that no controller gives", "horo-worker-01", false, map[string]string{role: "worker", index: "2"}, gang.RoleIndex{Role: "worker", Index: 2}, true},
		{"a launcher", "horo-launcher-xk2pq", true, map[string]string{role: "launcher", index: "0"}, gang.RoleIndex{Role: "launcher"}, true},
		{"a launcher without an index", "horo-launcher-xk2pq", false, map[string]string{"training.kubeflow.org/job-role": "launcher"}, gang.RoleIndex{Role: "launcher"}, true},
	} {
		job := horo(t, tt.works)
		got, ok := job.Reader.RoleIndexOf(job, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: tt.pod, Labels: tt.labels}})
		if got != tt.want || ok != tt.ok {
			t.Errorf("%s: got %v %t", tt.name, got, ok)
		}
	}
}

// The labels that a pod will have are those that the controller gives it.
func TestLabels(t *testing.T) {
	for works, want := range map[bool]string{false: "1", true: "2"} {
		job := horo(t, works)
		if got := job.Reader.Labels(job, gang.RoleIndex{Role: "worker", Index: 1})[index]; got != want {
			t.Errorf("worker 1, where the launcher works %t: label %s", works, got)
		}
		if got := job.Reader.Labels(job, gang.RoleIndex{Role: "launcher"})[index]; got != "0" {
			t.Errorf("launcher, where it works %t: label %s", works, got)
		}
	}
}

// The launcher's Job is known by its name, which a Job of Volcano may have, too.
func TestOwns(t *testing.T) {
	job := horo(t, false)
	for owner, want := range map[metav1.OwnerReference]bool{
		{APIVersion: "batch/v1", Kind: "Job", Name: "horo-launcher"}:                  true,
		{APIVersion: "batch/v1", Kind: "Job", Name: "other-launcher"}:                 false,
		{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Name: "horo-launcher"}: false,
	} {
		of := owner
		of.UID, of.Controller = "j", new(true)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "horo-launcher-xk2pq", OwnerReferences: []metav1.OwnerReference{of}}}
		if job.Owns(pod) != want {
			t.Errorf("a pod of %s %s: got %t", owner.APIVersion, owner.Name, !want)
		}
	}
}

func horo(t *testing.T, works bool) *gang.Job {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": map[string]any{"namespace": "a", "name": "horo"},
		"spec": map[string]any{"mpiReplicaSpecs": map[string]any{"Worker": map[string]any{"replicas": int64(2)}}}}}
	if works {
		u.Object["spec"].(map[string]any)["runLauncherAsWorker"] = true
	}
	job, err := mpijob.Reader().Job(u)
	if err != nil {
		t.Fatal(err)
	}
	return job
}
