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
	makes, ok := kind.ByKind(job.Reader.Makes)
	if job.Reader.Join == nil || !ok {
		return nil
	}
	made, err := get(ctx, client, makes, job.Meta.Namespace, job.MadeAs)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err == nil && metav1.IsControlledBy(&made.Meta, &job.Meta) {
		job.Reader.Join(job, made)
	}
	return err
}

// joinAll joins the jobs of a list with what was made of them, which is left out of it: users know the jobs. That of a job which may not be
// read stays: it is what is seen of it. Made are further such objects, which a selector of the list may not match.
func joinAll(all, made []*gang.Job) []*gang.Job {
	sources := map[gang.Identity]*gang.Job{}
	for _, job := range all {
		sources[gang.IdentityOf(&job.Meta)] = job
	}
	parts := map[*gang.Job]bool{}
	for _, job := range slices.Concat(all, made) {
		ref, _ := kind.SourceOf(job.Kind.GroupKind(), &job.Meta)
		if ref == nil {
			continue
		}
		whole := sources[gang.Identity{Namespace: job.Meta.Namespace, UID: ref.UID}]
		if whole == nil {
			continue
		}
		parts[job] = true
		if whole.Reader.Join != nil && whole.Made == nil && job.Meta.Name == whole.MadeAs {
			whole.Reader.Join(whole, job)
		}
	}
	return slices.DeleteFunc(all, func(job *gang.Job) bool { return parts[job] })
}
