// Package mpijob reads MPIJobs (kubeflow.org), v1 of the Training Operator and v2beta1 of the MPI Operator: one CRD, two
// possible controllers.
package mpijob

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/kubeflow"
)

// Versions are those of the API in which jobs are written: the MPI Operator's, which is developed, and the Training Operator's.
func Versions() []string { return []string{"v2beta1", "v1"} }

// Reader reads this kind.
func Reader() gang.JobReader {
	layout := kubeflow.Layout{Specs: "mpiReplicaSpecs", Order: []string{"launcher", "worker"}, Endless: "worker"} // sshd, or sleep
	return gang.JobReader{
		GroupKind: schema.GroupKind{Group: "kubeflow.org", Kind: "MPIJob"}, Resource: "mpijobs",
		Versions: []string{"v1", "v2beta1"}, Names: []string{"mpijob", "mpijobs", "mpi"},
		Read: func(u *unstructured.Unstructured) (gang.Job, error) {
			job, err := kubeflow.Read(u, layout)
			if policy, _, _ := unstructured.NestedString(u.Object, "spec", "launcherCreationPolicy"); policy == "WaitForWorkersReady" {
				job.Sequential = "the launcher is made only when all workers are ready (launcherCreationPolicy: WaitForWorkersReady)"
			}
			return job, err
		},
		NameLabels: kubeflow.NameLabels("mpi-job-name", "mpi_job_name"), OwnsPart: ownsPart, RoleIndexOf: roleIndexOf, Labels: kubeflow.Labels, PodName: podName, Template: layout.Template, Policy: kubeflow.Policy(),
		Controller: gang.Controller{Name: "mpi-operator", Images: []string{"mpi-operator", "training-operator"},
			Versions: map[string][]string{"training-operator": {"v1"}}, ManagedAs: []string{"kubeflow.org/mpi-operator", kubeflow.ControllerName}},
	}
}

// roleIndexOf knows the launcher, which the MPI Operator runs as a batch Job and labels without an index.
func roleIndexOf(job *gang.Job, pod *corev1.Pod) (gang.RoleIndex, bool) {
	if p, ok := kubeflow.RoleIndexOf(job, pod); ok {
		return p, true
	}
	for _, key := range []string{"training.kubeflow.org/job-role", "training.kubeflow.org/replica-type", "mpi-job-role"} {
		if strings.EqualFold(pod.Labels[key], "launcher") {
			return gang.RoleIndex{Role: "launcher"}, true
		}
	}
	return gang.RoleIndex{}, false
}

// ownsPart knows the Job of the launcher by its name. The pods of a deleted job of the same name are not distinguished in this one case.
func ownsPart(job *metav1.ObjectMeta, _ *corev1.Pod, part *metav1.OwnerReference) bool {
	return part.Kind == "Job" && part.Name == job.Name+"-launcher"
}

func podName(job string, p gang.RoleIndex) string {
	if p.Role == "launcher" {
		return job + "-launcher"
	}
	return kubeflow.PodName(job, p)
}
