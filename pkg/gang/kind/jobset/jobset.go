// Package jobset reads JobSets (jobset.x-k8s.io): jobs of several batch Jobs. A replicated job is a role, and each of its Jobs a part of
// it.
package jobset

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
)

const (
	// Group is the API group, and Version the only version of it that is served.
	Group   = "jobset.x-k8s.io"
	Version = "v1alpha2"
	// Kind is what a JobSet is called, and Resource the plural under which it is served.
	Kind, Resource = "JobSet", "jobsets"
	// ControllerName is who manages a JobSet that names no other controller.
	ControllerName = "jobset.sigs.k8s.io/jobset-controller"
)

// Labels of Jobs and pods.
const (
	// NameLabel names the JobSet.
	NameLabel  = "jobset.sigs.k8s.io/jobset-name"
	uidLabel   = "jobset.sigs.k8s.io/jobset-uid"
	roleLabel  = "jobset.sigs.k8s.io/replicatedjob-name"
	indexLabel = "jobset.sigs.k8s.io/job-index"
	// jobNameLabel names the Job.
	jobNameLabel = "job-name"
)

// Reader reads this kind.
func Reader() gang.JobReader {
	return gang.JobReader{
		GroupKind: schema.GroupKind{Group: Group, Kind: Kind}, Resource: Resource, Versions: []string{Version},
		Names: []string{"jobset", "jobsets", "js"},
		Read:  read, NameLabels: []string{NameLabel}, OwnsPart: ownsPart, PartLabel: NameLabel, RoleIndexOf: roleIndexOf, Labels: labels, LongestName: longestName, Template: template, WriteRoles: writeRoles,
		Controller: gang.Controller{Name: "jobset-controller-manager", Images: []string{"jobset"}, Leases: []string{"6d4f6a47.x-k8s.io"},
			Install: "kubectl apply --server-side -f https://github.com/kubernetes-sigs/jobset/releases/download/v0.12.0/manifests.yaml", ManagedAs: []string{ControllerName}},
	}
}

// longestName is that of the last pod of the last Job, or of that Job where pods are not indexed: Kubernetes shortens the names of those.
func longestName(job string, role gang.Role) string {
	jobs := int32(1)
	if role.Multiple > 0 {
		jobs = role.Replicas / role.Multiple
	}
	name := fmt.Sprintf("%s-%s-%d", job, role.Name, jobs-1)
	if role.PartSize > 0 {
		name += fmt.Sprintf("-%d-abcde", role.PartSize-1)
	}
	return name
}

// Written is what is read of what users write of a JobSet.
type Written struct {
	Spec spec `json:"spec,omitempty"`
}

type spec struct {
	ReplicatedJobs []replicatedJob `json:"replicatedJobs,omitempty"`
	Suspend        bool            `json:"suspend,omitempty"`
	StartupPolicy  struct {
		Order string `json:"startupPolicyOrder,omitempty"`
	} `json:"startupPolicy,omitempty"`
}

// replicatedJob is a number of Jobs that are alike.
type replicatedJob struct {
	Name string `json:"name"`
	// Replicas is 1 where it is absent.
	Replicas  *int32                  `json:"replicas,omitempty"`
	Template  batchv1.JobTemplateSpec `json:"template,omitempty"`
	DependsOn []dependency            `json:"dependsOn,omitempty"`
}

// dependency is a replicated job that has to be Ready or Complete before the Jobs of another are made.
type dependency struct {
	Name   string `json:"name"`
	Status string `json:"status,omitempty"`
}

func read(u *unstructured.Unstructured) (gang.Job, error) {
	job := gang.Job{Kind: u.GroupVersionKind(), Meta: gang.MetaOf(u)}
	f := &gang.Fields{Object: u}
	var s spec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(f.Map("spec"), &s); err != nil {
		return job, fmt.Errorf("decode spec: %w", err)
	}
	job.Suspended = s.Suspend
	seen := map[string]bool{}
	for _, r := range s.ReplicatedJobs {
		if seen[r.Name] {
			job.Problems = append(job.Problems, fmt.Sprintf("spec.replicatedJobs has two of the name %q", r.Name))
			continue
		}
		seen[r.Name] = true
		role, problem := r.role()
		if problem != "" {
			job.Problems = append(job.Problems, problem)
		}
		job.Roles = append(job.Roles, role)
	}
	if len(job.Roles) == 0 {
		job.Problems = append(job.Problems, "spec.replicatedJobs is empty")
	}
	readStatus(&job, f)
	divide(&job, s, f, u.GetAnnotations())
	return job, f.Err
}

// size is how many pods one of the Jobs runs at a time.
func (r replicatedJob) size() int32 {
	n := ptr.Deref(r.Template.Spec.Parallelism, 1)
	if completions := r.Template.Spec.Completions; completions != nil {
		n = min(n, *completions)
	}
	return n
}

// role is what the replicated job is a role of, and what is wrong with it; "" if nothing is.
func (r replicatedJob) role() (gang.Role, string) {
	pods := r.Template.Spec.Template
	role := gang.Role{Name: r.Name, Template: pods}
	if r.Name == "" {
		return role, "spec.replicatedJobs: one has no name"
	}
	if len(pods.Spec.Containers) == 0 {
		return role, "containers definition expected in " + r.Name
	}
	role.Main = pods.Spec.Containers[0].Name
	jobs, size := ptr.Deref(r.Replicas, 1), r.size()
	if jobs < 0 || size < 0 {
		return role, fmt.Sprintf("spec.replicatedJobs.%s: replicas, parallelism and completions must be 0 or more", r.Name)
	}
	total := int64(jobs) * int64(size)
	if total > math.MaxInt32 {
		return role, fmt.Sprintf("spec.replicatedJobs.%s: %d pods are more than a JobSet may have", r.Name, total)
	}
	role.Replicas = int32(total)
	if jobs > 1 {
		role.Multiple = size
	}
	if r.indexed() {
		role.PartSize = size
	}
	return role, ""
}

// indexed reports whether the index of a pod in its Job is the place of a member. Pods of a Job that runs more than it may have at a time
// come one after the other in the same places.
func (r replicatedJob) indexed() bool {
	job := r.Template.Spec
	if job.CompletionMode != nil && *job.CompletionMode == batchv1.NonIndexedCompletion {
		return false
	}
	return job.Completions == nil || *job.Completions <= ptr.Deref(job.Parallelism, 1)
}

func readStatus(job *gang.Job, f *gang.Fields) {
	conditions := f.List("status", "conditions")
	job.Seen = len(conditions) > 0 || len(f.List("status", "replicatedJobsStatus")) > 0
	for _, c := range conditions {
		if kind, _ := c["type"].(string); c["status"] == "True" && (kind == "Completed" || kind == "Failed") {
			w := gang.ConditionOf(c)
			job.End = &gang.End{Failed: kind == "Failed", Reason: w.Reason, Message: w.Message, At: w.At}
		}
	}
}

// ReportsSuspended reports whether the controller has suspended the Jobs of a JobSet.
func ReportsSuspended(u *unstructured.Unstructured) bool {
	return gang.IsTrue(u, "Suspended")
}

// Labelled is the JobSet that the labels of a pod name, and the replicated job; empty for pods of none.
func Labelled(pod *corev1.Pod) (name, role string) {
	return pod.Labels[NameLabel], pod.Labels[roleLabel]
}

// ownsPart reports whether a pod of a Job is one of the JobSet's: its labels are those of the Job, which the controller writes. Releases
// before 0.6 do not write the uid.
func ownsPart(job *metav1.ObjectMeta, pod *corev1.Pod, part *metav1.OwnerReference) bool {
	uid, written := pod.Labels[uidLabel]
	if !batchjob.Controls(part) || written && uid != string(job.UID) {
		return false
	}
	return pod.Labels[NameLabel] == job.Name && strings.HasPrefix(part.Name, job.Name+"-"+pod.Labels[roleLabel]+"-")
}

// WholeOf identifies the JobSet that a pod is of, by its labels, among those of its namespace; empty for none. Whether there is such a JobSet is not known.
func WholeOf(pod *corev1.Pod) string {
	return cmp.Or(pod.Labels[uidLabel], pod.Labels[NameLabel])
}

// roleIndexOf reads the replicated job, the number of the Job in it, and the index in the Job.
func roleIndexOf(job *gang.Job, pod *corev1.Pod) (gang.RoleIndex, bool) {
	place := gang.RoleIndex{Role: strings.ToLower(pod.Labels[roleLabel]), Index: -1}
	if place.Role == "" {
		return gang.RoleIndex{}, false
	}
	index := cmp.Or(pod.Labels[batchv1.JobCompletionIndexAnnotation], pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	number, err := strconv.ParseInt(pod.Labels[indexLabel], 10, 32)
	within, failed := strconv.ParseInt(index, 10, 32)
	for _, role := range job.Roles {
		size := int64(role.PartSize)
		if err == nil && failed == nil && strings.EqualFold(role.Name, place.Role) && number >= 0 && within >= 0 && within < size {
			place.Index = int(number*size + within)
		}
	}
	return place, true
}

// labels are those of a pod that constraints may select by.
func labels(job *gang.Job, p gang.RoleIndex) map[string]string {
	number := 0
	for _, role := range job.Roles {
		if strings.EqualFold(role.Name, p.Role) && role.PartSize > 0 {
			number = p.Index / int(role.PartSize)
		}
	}
	name := fmt.Sprintf("%s-%s-%d", job.Meta.Name, p.Role, number)
	return map[string]string{NameLabel: job.Meta.Name, roleLabel: p.Role, indexLabel: strconv.Itoa(number), jobNameLabel: name, batchv1.JobNameLabel: name}
}

func template(role string) []string {
	return []string{"spec", "replicatedJobs", role, "template", "spec", "template"}
}
