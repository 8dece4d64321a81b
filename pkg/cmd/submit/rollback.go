package submit

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/kube"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
)

// rollbackTimeout bounds the clean-up after a failed or interrupted submit.
const rollbackTimeout = 30 * time.Second

// rollBack deletes the job again because its gang could not be declared: cause. It does so even if ctx was cancelled in
// between, and only if the job is still the one that was created.
func (c *creator) rollBack(ctx context.Context, job, podGroup *unstructured.Unstructured, cause error) error {
	why := explainPodGroup(cause, podGroup)
	if c.dryRun {
		return why
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	err := deleteJob(ctx, c.client, job.GetNamespace(), job.GetName(), job.GetUID())
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return failure.WithCode(why.Code, "%w; TFJob %s/%s was deleted again", why, job.GetNamespace(), job.GetName()).WithHint("%s", why.Hint)
	}
	hint := fmt.Sprintf("it may wait for its PodGroup for ever; remove it with `gangctl delete %s -n %s`", job.GetName(), job.GetNamespace())
	if why.Hint != "" {
		hint += "\n" + why.Hint
	}
	return failure.WithCode(why.Code, "%w; TFJob %s/%s is left behind, because deleting it failed as well: %v",
		why, job.GetNamespace(), job.GetName(), failure.From(err)).WithHint("%s", hint)
}

// explainPodGroup adds what is known about a PodGroup that could not be created. Its name and namespace are those of obj.
func explainPodGroup(err error, obj *unstructured.Unstructured) *failure.Error {
	why := failure.From(err)
	if apierrors.IsAlreadyExists(err) {
		return why.WithHint("a PodGroup of this name belongs to something else: choose another name, or remove it with "+
			"`kubectl -n %s delete podgroups.scheduling.x-k8s.io %s`", obj.GetNamespace(), obj.GetName())
	}
	return why
}

func deleteJob(ctx context.Context, client *kube.Client, namespace, name string, uid types.UID) error {
	background := metav1.DeletePropagationBackground
	return client.Dynamic.Resource(tfjob.GVR()).Namespace(namespace).
		Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background})
}
