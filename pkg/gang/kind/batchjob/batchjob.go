// Package batchjob reads the Jobs of Kubernetes itself (batch/v1). All pods of a Job are alike, so it has one role.
package batchjob

import (
	"cmp"
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
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// Role is the name of the only role.
const Role = "Worker"

// nameLabel names the Job of a pod, in every release of Kubernetes.
const nameLabel = "job-name"

// GroupKind is the kind of these Jobs.
func GroupKind() schema.GroupKind { return schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"} }

// Controls reports whether an owner is a Job of Kubernetes: Volcano has a Job, too.
func Controls(owner *metav1.OwnerReference) bool { return gang.OwnerKind(owner) == GroupKind() }

// Reader reads this kind.
func Reader() gang.JobReader {
	return gang.JobReader{
		GroupKind: GroupKind(), Resource: "jobs", Versions: []string{"v1"}, Names: []string{"batchjob", "jobs.batch", "job.batch"},
		Read: func(u *unstructured.Unstructured) (gang.Job, error) {
			typed := &batchv1.Job{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed); err != nil {
				return gang.Job{}, err
			}
			return Convert(typed), nil
		},
		NameLabels: []string{nameLabel}, RoleIndexOf: roleIndexOf, Labels: labels, Template: func(string) []string { return []string{"spec", "template"} },
		Controller: gang.Controller{ManagedAs: []string{batchv1.JobControllerName}},
	}
}

// MinParallelism is the annotation with how many pods Kueue may reduce a Job to, where the quota is not enough for all.
const MinParallelism = kueue.Group + "/job-min-parallelism"

// Convert reads a typed Job. A Job runs parallelism pods at a time, or as many as are left to complete: indexes that have failed for good are not. One that has succeeded has
// as many as it began with.
func Convert(j *batchv1.Job) gang.Job {
	job := gang.Job{
		Kind: batchv1.SchemeGroupVersion.WithKind("Job"), Meta: j.ObjectMeta, Reader: Reader(), BatchJob: j,
		Suspended: j.Spec.Suspend != nil && *j.Spec.Suspend, Seen: j.Status.StartTime != nil || len(j.Status.Conditions) > 0,
	}
	replicas := int32(1)
	if j.Spec.Parallelism != nil {
		replicas = *j.Spec.Parallelism
	}
	if j.Spec.Completions != nil {
		job.FailedIndexes = failedIndexes(j, *j.Spec.Completions)
		left := *j.Spec.Completions
		if end := endOf(j, batchv1.JobFailed, batchv1.JobComplete); end == nil || end.Failed {
			left -= j.Status.Succeeded + job.FailedIndexes.Count()
		}
		replicas = min(replicas, max(0, left))
	}
	role := gang.Role{Name: Role, Replicas: replicas, Template: j.Spec.Template}
	if c := j.Spec.Template.Spec.Containers; len(c) > 0 {
		role.Main = c[0].Name
	}
	job.Roles = []gang.Role{role}
	if n, err := strconv.ParseInt(j.Annotations[MinParallelism], 10, 32); err == nil && n > 0 && n < int64(replicas) {
		job.MinMember = new(int32(n))
	} else if _, queued := kueue.QueueOf(&j.ObjectMeta); queued && job.Suspended {
		job.Elastic = &replicas // Kueue admits all of them, or none
	} else if n, ok := MinCount(j); ok {
		job.Elastic = new(min(n, replicas))
	}
	if by := j.Spec.ManagedBy; by != nil && *by != batchv1.JobControllerName {
		job.LeftTo = *by
	}
	if j.Status.Ready != nil {
		job.ReportedUp = *j.Status.Ready
	}
	if j.Spec.ActiveDeadlineSeconds != nil {
		job.Deadline = gang.Seconds(*j.Spec.ActiveDeadlineSeconds)
	}
	if j.Status.StartTime != nil {
		job.Started = j.Status.StartTime.Time
	}
	job.End = cmp.Or(endOf(j, batchv1.JobFailed, batchv1.JobComplete), endOf(j, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet))
	return job
}

// Gate is the feature gate without which Kubernetes makes no PodGroup of what spec.scheduling of a Job states.
const Gate = "WorkloadWithJob"

// MinCount is the minimum of the gang that spec.scheduling of a Job states; ok is false for a Job that states none.
func MinCount(j *batchv1.Job) (n int32, ok bool) {
	if j.Spec.Scheduling == nil || j.Spec.Scheduling.SchedulingPolicy == nil || j.Spec.Scheduling.SchedulingPolicy.Gang == nil {
		return 0, false
	}
	return max(1, ptr.Deref(j.Spec.Scheduling.SchedulingPolicy.Gang.MinCount, ptr.Deref(j.Spec.Parallelism, 1))), true
}

// endOf is how a Job ended by the conditions of its failure and of its success; nil with neither. The controller sets those that decide first, and those that the Job has
// ended when the last of its pods has.
func endOf(j *batchv1.Job, failure, success batchv1.JobConditionType) *gang.End {
	for _, c := range j.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == failure || c.Type == success) {
			return &gang.End{Failed: c.Type == failure, Reason: c.Reason, Message: c.Message, At: c.LastTransitionTime.Time}
		}
	}
	return nil
}

// failedIndexes are those whose pods have failed more often than backoffLimitPerIndex allows, or in a way that podFailurePolicy does not retry. The
// controller writes them for such Jobs only.
func failedIndexes(j *batchv1.Job, completions int32) gang.Indexes {
	if j.Status.FailedIndexes == nil || j.Spec.BackoffLimitPerIndex == nil {
		return nil
	}
	return gang.ParseIndexes(*j.Status.FailedIndexes, completions)
}

// roleIndexOf reads the completion index; pods of a Job without one are distinguished by name only.
func roleIndexOf(_ *gang.Job, pod *corev1.Pod) (gang.RoleIndex, bool) {
	index := cmp.Or(pod.Labels[batchv1.JobCompletionIndexAnnotation], pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	n, err := strconv.Atoi(index)
	return gang.RoleIndex{Role: strings.ToLower(Role), Index: n}, err == nil
}

func labels(job *gang.Job, _ gang.RoleIndex) map[string]string {
	return map[string]string{nameLabel: job.Meta.Name, batchv1.JobNameLabel: job.Meta.Name}
}
