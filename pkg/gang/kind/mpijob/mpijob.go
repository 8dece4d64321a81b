// Package mpijob reads MPIJobs (kubeflow.org), v1 of the Training Operator and v2beta1 of the MPI Operator: one CRD, two
// possible controllers.
package mpijob

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/kubeflow"
)

// Versions are those of the API in which jobs are written: the MPI Operator's, which is developed, and the Training Operator's.
func Versions() []string { return []string{"v2beta1", "v1"} }

// Reader reads this kind.
func Reader() gang.JobReader {
	r := kubeflow.Layout{Specs: "mpiReplicaSpecs", Roles: []string{"Launcher", "Worker"}, Endless: "worker"}.Reader("MPIJob", "mpi", "mpi-job-name", "mpi_job_name") // sshd, or sleep
	read := r.Read
	r.Versions, r.Read = []string{"v1", "v2beta1"}, func(u *unstructured.Unstructured) (gang.Job, error) {
		job, err := read(u)
		if policy, _, _ := unstructured.NestedString(u.Object, "spec", "launcherCreationPolicy"); policy == "WaitForWorkersReady" {
			job.Sequential = "the launcher is made only when all workers are ready (launcherCreationPolicy: WaitForWorkersReady)"
			for i := range job.Roles {
				if strings.EqualFold(job.Roles[i].Name, "launcher") {
					job.Roles[i].Follows = gang.Lead{Role: "worker"}
				}
			}
		}
		return job, err
	}
	r.OwnsPart, r.RoleIndexOf, r.Labels, r.PodName = ownsPart, roleIndexOf, labels, podName
	r.Controller = gang.Controller{Name: "mpi-operator", Images: []string{"mpi-operator", "training-operator"},
		Versions: map[string][]string{"training-operator": {"v1"}}, ManagedAs: []string{"kubeflow.org/mpi-operator", kubeflow.ControllerName}}
	return r
}

// roleIndexOf knows a worker by its name, which counts from 0 in every release, where its label may not; and the launcher, which the MPI Operator
// runs as a batch Job and may label without an index.
func roleIndexOf(job *gang.Job, pod *corev1.Pod) (gang.RoleIndex, bool) {
	if p, ok := named(job, pod); ok {
		return p, true
	}
	if p, ok := kubeflow.RoleIndexOf(job, pod); ok {
		if p.Role == "worker" {
			p.Index -= launcherWorks(job)
		}
		return p, p.Index >= 0
	}
	for _, key := range []string{"training.kubeflow.org/job-role", "training.kubeflow.org/replica-type", "mpi-job-role"} {
		if strings.EqualFold(pod.Labels[key], "launcher") {
			return gang.RoleIndex{Role: "launcher"}, true
		}
	}
	return gang.RoleIndex{}, false
}

// named is the worker that has the name of a pod.
func named(job *gang.Job, pod *corev1.Pod) (gang.RoleIndex, bool) {
	index, _ := strings.CutPrefix(pod.Name, job.Meta.Name+"-worker-")
	n, err := strconv.Atoi(index)
	worker := gang.RoleIndex{Role: "worker", Index: n}
	return worker, err == nil && n >= 0 && podName(job.Meta.Name, worker) == pod.Name
}

// labels are those of the Training Operator. Where the launcher works too, the MPI Operator has it as the first of the workers.
func labels(job *gang.Job, p gang.RoleIndex) map[string]string {
	if p.Role == "worker" {
		p.Index += launcherWorks(job)
	}
	return kubeflow.Labels(job, p)
}

// launcherWorks is 1 for a job whose launcher is a worker, too (runLauncherAsWorker of v2beta1), and otherwise 0.
func launcherWorks(job *gang.Job) int {
	if job.Object == nil {
		return 0
	}
	if works, _, _ := unstructured.NestedBool(job.Object.Object, "spec", "runLauncherAsWorker"); works {
		return 1
	}
	return 0
}

// ownsPart knows the Job of the launcher by its name. The pods of a deleted job of the same name are not distinguished in this one case.
func ownsPart(job *metav1.ObjectMeta, _ *corev1.Pod, part *metav1.OwnerReference) bool {
	return part.Name == job.Name+"-launcher" && batchjob.Controls(part)
}

func podName(job string, p gang.RoleIndex) string {
	if p.Role == "launcher" {
		return job + "-launcher"
	}
	return kubeflow.PodName(job, p)
}
