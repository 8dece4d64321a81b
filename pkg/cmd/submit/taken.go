package submit

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	jobkinds "github.com/gangctl/gangctl/pkg/gang/kind"
)

// checkLabels finds another job, or pods, in the gang that the labels of a job's pods name. Without an object nothing but the name tells gangs apart: the members of both would be
// counted as one gang's. What may not be listed is not looked at, and an earlier job of the name and the kind is about to go.
func (c *creator) checkLabels(ctx context.Context, r *rehearsal) error {
	mine, err := jobs.Read(r.Job)
	if err != nil {
		return nil //nolint:nilerr // the server reports what is wrong with it
	}
	key, ok := dialect.OfTemplate(mine)
	if !ok || key.Dialect != gang.Labels {
		return nil
	}
	what := "gang " + key.Namespace + "/" + key.Name
	for _, job := range c.jobsNamed(ctx, key) {
		if job.Kind.GroupKind() == mine.Kind.GroupKind() && job.Meta.Name == mine.Meta.Name {
			return nil // the server reports that it is there; the pods, which other objects may own for it, are its own
		}
		if its, ok := dialect.OfTemplate(job); ok && its == key && job.End == nil && job.Kind.GroupKind() != mine.Kind.GroupKind() {
			return takenBy(what, job.Reader, key.Namespace, job.Meta.Name)
		}
	}
	pods, err := c.client.Typed.CoreV1().Pods(key.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.NameLabel + "=" + key.Name, ResourceVersion: "0"})
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		owner := metav1.GetControllerOf(p)
		if owner == nil {
			return failure.Errorf("create %s: Pod %s/%s is in it", what, p.Namespace, p.Name).WithHint("choose another name, or delete what has label %s=%s first", labels.NameLabel, key.Name)
		}
		kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
		if kind == mine.Kind.GroupKind() && owner.Name == mine.Meta.Name {
			continue
		}
		if reader, known := jobkinds.ByKind(kind); known {
			return takenBy(what, reader, p.Namespace, owner.Name)
		}
		return failure.Errorf("create %s: Pod %s/%s of %s %s is in it", what, p.Namespace, p.Name, owner.Kind, owner.Name).
			WithHint("choose another name, or delete that first")
	}
	return nil
}

// jobsNamed are the jobs of every kind that have the name of a gang.
func (c *creator) jobsNamed(ctx context.Context, key gang.Key) []*gang.Job {
	job, err := jobs.Find(ctx, c.client, key.Namespace, key.Name)
	var several *gang.AmbiguousJobError
	switch {
	case err == nil:
		return []*gang.Job{job}
	case errors.As(err, &several):
		return several.Jobs
	}
	return nil
}
