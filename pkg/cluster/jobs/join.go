package jobs

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind"
)

// Join gives a job of a kind that is made into an object of another one the members of that object, if it is there and may be read.
// Other jobs stay as they are.
func Join(ctx context.Context, client *kube.Client, job *gang.Job) error {
	makes, ok := kind.ByKind(job.Reader.Made)
	if job.Reader.Join == nil || !ok {
		return nil
	}
	made, err := get(ctx, client, makes, job.Meta.Namespace, job.Meta.Name)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err == nil && metav1.IsControlledBy(&made.Meta, &job.Meta) {
		job.Reader.Join(job, made)
	}
	return err
}

// withoutMade leaves out jobs that were made of others among them: users know those. The order stays.
func withoutMade(all []*gang.Job) []*gang.Job {
	made := map[*gang.Job]bool{}
	for _, whole := range all {
		for _, job := range all {
			if isMade(job, whole) {
				made[job] = true
			}
		}
	}
	return slices.DeleteFunc(all, func(job *gang.Job) bool { return made[job] })
}

// isMade reports whether a job is what the controller of another one made of that.
func isMade(job, whole *gang.Job) bool {
	return whole.Reader.Join != nil && job.Kind.GroupKind() == whole.Reader.Made && job.Name() == whole.Name() && metav1.IsControlledBy(&job.Meta, &whole.Meta)
}

// joinAll joins the jobs of a list with what was made of them, which is left out of it. Made are further such objects, which a selector of
// the list may not match.
func joinAll(all, made []*gang.Job) []*gang.Job {
	byName := map[string]*gang.Job{}
	for _, job := range slices.Concat(all, made) {
		byName[job.Kind.GroupKind().String()+" "+job.Name()] = job
	}
	parts := map[*gang.Job]bool{}
	for _, whole := range all {
		if job := byName[whole.Reader.Made.String()+" "+whole.Name()]; job != nil && isMade(job, whole) {
			whole.Reader.Join(whole, job)
			parts[job] = true
		}
	}
	return slices.DeleteFunc(all, func(job *gang.Job) bool { return parts[job] })
}
