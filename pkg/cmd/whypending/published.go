package whypending

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind"
)

// The values of --source.
const (
	sourceAuto      = "auto"
	sourceCluster   = "cluster"
	sourceScheduler = "scheduler"
)

// largeCluster is the number of nodes from which on reading everything takes seconds, so that an answer that is there already is preferred.
const largeCluster = 500

// fromScheduler returns the answer that the gang scheduler has published, with a
// few GETs; nil where there is none that can be used. Why there is none is an
// error only for who insists on it.
func (o *Options) fromScheduler(ctx context.Context, namespace string) (*answer.Answer, error) {
	if o.Source == sourceCluster || o.Name == "" || o.From != "" || o.Save != "" || o.Verbose || o.Node != "" || o.Replica != "" || o.Apply.given() {
		return nil, nil
	}
	client, err := o.Client()
	if err != nil {
		return nil, err
	}
	a, err := o.published(ctx, client, namespace)
	switch {
	case err != nil && o.Source == sourceScheduler:
		return nil, unpublished(err)
	case err != nil:
		return nil, nil //nolint:nilerr // it was not requested: the cluster itself is
	case o.Source == sourceAuto && (a.Nodes == nil || a.Nodes.Total < largeCluster):
		return nil, nil
	}
	a.Notes = append(a.Notes, o.found(a)+fmt.Sprintf("; --source=%s looks at the cluster itself", sourceCluster))
	return a, nil
}

// found reports when the scheduler found an answer out.
func (o *Options) found(a *answer.Answer) string {
	return fmt.Sprintf("gang-scheduler found this out %s ago", phrase.Age(o.IO.Clock.Since(*a.Snapshot.At)))
}

// elsePublished is what the scheduler published in place of an answer that cannot be given, because the caller may not see what it depends on. It
// has no rows of nodes, and no gang of several by its number.
func (o *Options) elsePublished(ctx context.Context, client *kube.Client, a *answer.Answer) *answer.Answer {
	if client == nil || o.Source != sourceAuto || o.Verbose || o.Apply.given() || o.Node != "" || o.Replica != "" {
		return a
	}
	seen := cmdutil.ElsePublished(ctx, client, o.IO.Clock.Now(), a)
	if seen != a {
		seen.Notes = append(seen.Notes, o.found(seen)+fmt.Sprintf("; you may not see all that it depends on, and --source=%s names what", sourceCluster))
	}
	return seen
}

// unpublished reports why there is no answer of the scheduler; what ails the API server or the caller comes with its own hint.
func unpublished(err error) error {
	explained := failure.From(err)
	if explained.Hint == "" {
		explained.Hint = "look at the cluster itself: leave out --source"
	}
	return failure.Errorf("no answer of the gang scheduler: %s", explained.Message).WithHint("%s", explained.Hint)
}

// published reads the answer. Who may not see whether the scheduler works gets a note, with --source=scheduler.
func (o *Options) published(ctx context.Context, client *kube.Client, namespace string) (*answer.Answer, error) {
	job, err := o.theJob(ctx, client, namespace)
	if err != nil {
		return nil, err
	}
	of := cmdutil.PublishedJob{Namespace: namespace, UID: job.GetUID(), Generation: job.GetGeneration()}
	return cmdutil.PublishedAnswer(ctx, client, o.IO.Clock.Now(), of, o.Source == sourceScheduler)
}

// theJob finds the one job of the name.
func (o *Options) theJob(ctx context.Context, client *kube.Client, namespace string) (*unstructured.Unstructured, error) {
	readers := kind.Readers()
	if reader, ok := kind.ByName(o.Kind); ok {
		readers = []gang.JobReader{reader}
	} else if o.Kind != "" && o.Kind != "job" && o.Kind != "jobs" {
		return nil, fmt.Errorf("answers are published for jobs, not for a %s", o.Kind)
	}
	var found []*unstructured.Unstructured
	var refused error
	for _, reader := range readers {
		for _, version := range reader.Versions {
			gvr := schema.GroupVersionResource{Group: reader.Group, Version: version, Resource: reader.Resource}
			job, err := client.Dynamic.Resource(gvr).Namespace(namespace).Get(ctx, o.Name, metav1.GetOptions{})
			if err == nil {
				// What was made of a job, as the JobSet of a TrainJob, has the job's answer. The kinds of job come before those.
				if !slices.ContainsFunc(found, func(whole *unstructured.Unstructured) bool { return metav1.IsControlledBy(job, whole) }) {
					found = append(found, job)
				}
				break
			}
			if !apierrors.IsNotFound(err) {
				failed := failure.Op{Verb: "get", Resource: gvr, Kind: reader.Kind, Namespace: namespace, Name: o.Name}.Wrap(err)
				if !apierrors.IsForbidden(err) {
					return nil, failed
				}
				refused = cmp.Or(refused, failed) // of a kind that the cluster may not even serve
				break
			}
		}
	}
	switch len(found) {
	case 0:
		return nil, cmp.Or(refused, error(&gang.JobNotFoundError{Namespace: namespace, Name: o.Name}))
	case 1:
		return found[0], nil
	default:
		return nil, fmt.Errorf("%s/%s is the name of %d jobs", namespace, o.Name, len(found))
	}
}
