// Package jobs reads jobs of every kind, whoever made them, and their pods from a cluster.
package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
)

// Op names a request for a job, for errors.
func Op(job *gang.Job, verb string) failure.Op {
	return failure.Op{Verb: verb, Resource: job.Resource(), Kind: job.Kind.Kind, Namespace: job.Meta.Namespace, Name: job.Meta.Name}
}

// Read reads an object of any kind of job.
func Read(object *unstructured.Unstructured) (*gang.Job, error) {
	gvk := object.GroupVersionKind()
	reader, ok := kind.ByKind(gvk.GroupKind())
	if !ok {
		return nil, fmt.Errorf("%s %s/%s: gangctl does not know this kind of job", gvk.Kind, object.GetNamespace(), object.GetName())
	}
	job, err := reader.Job(object)
	if err != nil {
		return nil, err
	}
	job.Kind = gvk
	return job, nil
}

// isGang reports whether a job is one of gangctl's: any kind of job whose members belong together, and a Job of Kubernetes itself if
// its pods declare that they are a gang, or gangctl has submitted it without one. Parts of other jobs, as an MPIJob's launcher and the Jobs of a JobSet, are not.
func isGang(j *gang.Job) bool {
	if j.Kind.Group != batchv1.GroupName {
		return true
	}
	if whole, _ := kind.WholeOf(&j.Meta); whole != nil {
		return false
	}
	_, ok := dialect.OfTemplate(j)
	return ok || j.Meta.Annotations[provenance.CommandAnnotation] != ""
}

// sortJobs sorts by namespace, name and kind.
func sortJobs(all []*gang.Job) {
	slices.SortFunc(all, func(a, b *gang.Job) int {
		return cmp.Or(strings.Compare(a.Meta.Namespace, b.Meta.Namespace), strings.Compare(a.Meta.Name, b.Meta.Name), strings.Compare(a.Kind.Kind, b.Kind.Kind))
	})
}
