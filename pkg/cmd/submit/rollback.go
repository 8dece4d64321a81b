package submit

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// rollbackTimeout bounds the clean-up after a failed or interrupted submit.
const rollbackTimeout = 30 * time.Second

// rollBack deletes the job again, and with it what it owns already, because an object that it owns could not be created: cause.
// It does so even if ctx was cancelled in between, and only if the job is still the one that was created.
func (c *creator) rollBack(ctx context.Context, job, owned *unstructured.Unstructured, cause error) error {
	why := explainOwned(cause, owned)
	if c.dryRun {
		return why
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	err := c.delete(ctx, job)
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return failure.WithCode(why.Code, "%w; %s %s/%s was deleted again", why, job.GetKind(), job.GetNamespace(), job.GetName()).WithHint("%s", why.Hint)
	}
	hint := fmt.Sprintf("it may wait for its %s for ever; remove it with `gangctl delete %s -n %s`", owned.GetKind(), job.GetName(), job.GetNamespace())
	if why.Hint != "" {
		hint += "\n" + why.Hint
	}
	return failure.WithCode(why.Code, "%w; %s %s/%s is left behind, because deleting it failed as well: %v",
		why, job.GetKind(), job.GetNamespace(), job.GetName(), failure.From(err)).WithHint("%s", hint)
}

// explainOwned adds what is known about an object of a job that could not be created. Its name and namespace are those of obj.
func explainOwned(err error, obj *unstructured.Unstructured) *failure.Error {
	why := failure.From(err)
	if apierrors.IsAlreadyExists(err) {
		return why.WithHint("a %s of this name belongs to something else: choose another name, or remove it with "+
			"`kubectl -n %s delete %s %s`", obj.GetKind(), obj.GetNamespace(), resourceOf(obj).GroupResource(), obj.GetName())
	}
	return why
}

func (c *creator) delete(ctx context.Context, job *unstructured.Unstructured) error {
	background, uid := metav1.DeletePropagationBackground, job.GetUID()
	return c.client.Dynamic.Resource(resourceOf(job)).Namespace(job.GetNamespace()).
		Delete(ctx, job.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background})
}
