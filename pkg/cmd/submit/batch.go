package submit

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/submit/choose"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// batch is the jobs that one command submits: all of them, or none.
type batch struct {
	jobs []*desiredJob
	// others are created first, as jobs may need them.
	others []*unstructured.Unstructured
	// owned are other objects that jobs own, which are created after these.
	owned []*unstructured.Unstructured
	// namespace is that of others for which only the API server knows that they have one.
	namespace string
}

// desiredJob is a job as it was described, before anything is known of the cluster.
type desiredJob struct {
	namespace string
	// source is what errors call the file that describes the job; empty for flags.
	source  string
	kind    gang.JobReader
	request choose.Request
	// schedulers are those that its members request scheduler by a name that is neither Kubernetes' own nor gangctl's.
	schedulers []string
	// foreign is true if the file declares the gang for another scheduler, which the cluster may lack.
	foreign bool
	// prepare reads from the target what rendering the job takes; nil where it takes nothing.
	prepare func(ctx context.Context, t *target) error
	// objects renders the job as decided, with notes on what is not as the file has it. serves reports whether the cluster serves
	// group objects of an API group; it is nil where that is not known.
	objects func(d choose.Decision, serves func(group string) bool) (*render.Objects, []string, error)
}

// needsDiscovery reports whether a decision on the job depends on what the cluster serves.
func (j *desiredJob) needsDiscovery() bool {
	return j.foreign || len(j.schedulers) > 0 || j.request.NeedsCluster()
}

// check renders every job without a cluster: what is wrong with flags or files is reported before any request.
func (b *batch) check() error {
	for _, j := range b.jobs {
		if _, _, err := j.objects(j.request.Offline(), nil); err != nil {
			return err
		}
	}
	return nil
}

// jobsNamespace is the namespace of all jobs, or "" for all namespaces if there are several.
func (b *batch) jobsNamespace() string {
	namespace := b.jobs[0].namespace
	if slices.ContainsFunc(b.jobs, func(j *desiredJob) bool { return j.namespace != namespace }) {
		return ""
	}
	return namespace
}

// addOthers is the cluster once it has what the jobs need.
func (b *batch) addOthers(snap *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	all := slices.Concat(b.others, b.owned)
	if len(all) == 0 {
		return snap, nil
	}
	c := snap.Clone()
	for _, other := range all {
		other = other.DeepCopy()
		if namespaced, known := namespacedKind(other.GroupVersionKind().GroupKind()); other.GetNamespace() == "" && (namespaced || !known) {
			other.SetNamespace(b.namespace)
		}
		if err := c.PutUntyped(other); err != nil {
			return nil, failure.Errorf("read %s: %w", named(other), err)
		}
	}
	c.Finish()
	return c, nil
}
