package whypending

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/published"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind"
)

// The values of --source.
const (
	sourceAuto      = "auto"
	sourceCluster   = "cluster"
	sourceScheduler = "scheduler"
)

const (
	// largeCluster is the number of nodes from which on reading everything
	// takes seconds, so that an answer that is there already is preferred.
	largeCluster = 500
	// publishedFor is how old a published answer may be. A scheduler that works
	// looks at a gang that waits again and again, publishes what has changed at
	// once, and what has not every half hour.
	publishedFor = 40 * time.Minute
	// unleasedFor is the same where it is unknown whether the scheduler still
	// works: it has no lease if it runs without leader election.
	unleasedFor = time.Minute

	schedulerLease     = "gang-scheduler"
	schedulerNamespace = "gangctl-system"
)

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
	age := phrase.Age(o.IO.Clock.Since(*a.Snapshot.At))
	a.Notes = append(a.Notes, fmt.Sprintf("%s found this out %s ago; --source=%s looks at the cluster itself", schedulerLease, age, sourceCluster))
	return a, nil
}

// unpublished reports why there is no answer of the scheduler; what ails the API server or the caller comes with its own hint.
func unpublished(err error) error {
	explained := failure.From(err)
	if explained.Hint == "" {
		explained.Hint = "look at the cluster itself: leave out --source"
	}
	return failure.Errorf("no answer of the gang scheduler: %s", explained.Message).WithHint("%s", explained.Hint)
}

// published reads the answer. It trusts a scheduler that works, and no other. Who
// may not see whether it works gets a note, with --source=scheduler.
func (o *Options) published(ctx context.Context, client *kube.Client, namespace string) (*answer.Answer, error) {
	job, err := o.theJob(ctx, client, namespace)
	if err != nil {
		return nil, err
	}
	event, err := client.Typed.CoreV1().Events(namespace).Get(ctx, published.EventName(job.GetUID()), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if !published.Carries(event) {
		return nil, published.ErrNone
	}
	key, err := client.Typed.CoreV1().ConfigMaps(schedulerNamespace).Get(ctx, published.KeyName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("it cannot be checked who wrote the answer: %w", err)
	}
	public, err := published.DecodePublicKey(key)
	if err != nil {
		return nil, err
	}
	a, err := published.Get(event, public)
	if err != nil {
		return nil, err
	}
	if a.Job.Generation != job.GetGeneration() { // whoever may write events may put back an answer that the scheduler signed earlier
		return nil, errors.New("what it published is about the job before its spec was changed")
	}
	now, limit := o.IO.Clock.Now(), publishedFor
	lease, err := client.Typed.CoordinationV1().Leases(schedulerNamespace).Get(ctx, schedulerLease, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		limit = unleasedFor
	case apierrors.IsForbidden(err) && o.Source == sourceScheduler:
		a.Notes = append(a.Notes, fmt.Sprintf("whether it still works cannot be seen: no right to get lease %s in namespace %s", schedulerLease, schedulerNamespace))
	case apierrors.IsForbidden(err):
		limit = unleasedFor
	case err != nil:
		return nil, err
	case !published.Alive(lease, now):
		return nil, fmt.Errorf("it does not renew lease %s/%s", schedulerNamespace, schedulerLease)
	}
	if age := now.Sub(*a.Snapshot.At); age > limit {
		return nil, fmt.Errorf("what it published is %s old", phrase.Age(age))
	}
	return a, nil
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
