// Package jobs reads jobs of every kind, whoever made them, and their pods from a cluster.
package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/summary"
)

// Job is one job as the cluster has it.
type Job struct {
	gang.Job
	Reader gang.JobReader
	// Resource is where it is served.
	Resource schema.GroupVersionResource
	Object   *unstructured.Unstructured
}

// Ref is KIND.GROUP/NAME in lower case, as kubectl prints it.
func (j *Job) Ref() string {
	return strings.ToLower(j.Kind.Kind) + "." + j.Kind.Group + "/" + j.Meta.Name
}

// Op names a request for the job, for errors.
func (j *Job) Op(verb string) failure.Op {
	return failure.Op{Verb: verb, Resource: j.Resource, Kind: j.Kind.Kind, Namespace: j.Meta.Namespace, Name: j.Meta.Name}
}

// String is KIND NAMESPACE/NAME.
func (j *Job) String() string { return j.Kind.Kind + " " + j.Name() }

// Summary is the job at a glance; it picks its own from the pods.
func (j *Job) Summary(pods []*corev1.Pod) summary.Summary { return summary.Of(j.Reader, j.Job, pods) }

// Members are the members of the job; it picks its own from the pods.
func (j *Job) Members(pods []*corev1.Pod) []summary.Member {
	return summary.Members(j.Reader, j.Job, pods)
}

// Read reads an object of any kind of job.
func Read(object *unstructured.Unstructured) (*Job, error) {
	gvk := object.GroupVersionKind()
	reader, ok := kind.ByKind(gvk.GroupKind())
	if !ok {
		return nil, fmt.Errorf("%s %s/%s: gangctl does not know this kind of job", gvk.Kind, object.GetNamespace(), object.GetName())
	}
	job, err := reader.Read(object)
	if err != nil {
		return nil, fmt.Errorf("read %s %s/%s: %w", gvk.Kind, object.GetNamespace(), object.GetName(), err)
	}
	job.Kind = gvk
	return &Job{Job: job, Reader: reader, Object: object, Resource: gvk.GroupVersion().WithResource(reader.Resource)}, nil
}

// isGang reports whether a job is one of gangctl's: any kind of job whose operator makes gangs, and a Job of Kubernetes itself if
// its pods say that they are one. Those of other jobs, as an MPIJob's launcher, are not.
func (j *Job) isGang() bool {
	if j.Kind.Group != batchv1.GroupName {
		return true
	}
	if owner := metav1.GetControllerOfNoCopy(j.Object); owner != nil {
		if group, _, ok := strings.Cut(owner.APIVersion, "/"); ok {
			if _, known := kind.ByKind(schema.GroupKind{Group: group, Kind: owner.Kind}); known {
				return false
			}
		}
	}
	d, _ := summary.GangOf(j.Job)
	return d != ""
}

// versions are those under which a kind may be served, the most usual first.
func versions(r gang.JobReader) []string {
	if r.Kind == "MPIJob" {
		return []string{"v1", "v2beta1"}
	}
	return []string{"v1"}
}

// sortJobs sorts by namespace, name and kind.
func sortJobs(all []*Job) {
	slices.SortFunc(all, func(a, b *Job) int {
		return cmp.Or(strings.Compare(a.Meta.Namespace, b.Meta.Namespace), strings.Compare(a.Meta.Name, b.Meta.Name), strings.Compare(a.Kind.Kind, b.Kind.Kind))
	})
}
