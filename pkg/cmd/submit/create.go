package submit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/iostreams"
	"github.com/gangctl/gangctl/pkg/kube"
	"github.com/gangctl/gangctl/pkg/render"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
)

// fieldManager is the name under which the API server records what gangctl wrote.
const fieldManager = "gangctl"

// rollbackTimeout bounds the clean-up after a failed or interrupted submit.
const rollbackTimeout = 30 * time.Second

// creator creates a job and its gang: both, or neither.
type creator struct {
	client *kube.Client
	io     *iostreams.IOStreams
	dryRun bool
}

// create returns the objects as the server stored them; the PodGroup is nil if the dialect needs none. The job comes first,
// because the PodGroup carries its uid; members of a PodGroup that is not there yet just wait.
func (c *creator) create(ctx context.Context, objects *render.Objects) (job, podGroup *unstructured.Unstructured, err error) {
	wanted, err := render.Unstructured(objects.Job)
	if err != nil {
		return nil, nil, err
	}
	job, err = c.post(ctx, tfjob.GVR(), wanted)
	if err != nil {
		return nil, nil, c.explainJob(err, wanted)
	}
	if objects.PodGroup == nil {
		return job, nil, nil
	}
	render.Own(objects.PodGroup, job.GetUID())
	wanted, err = render.Unstructured(objects.PodGroup)
	if err != nil {
		return nil, nil, c.rollBack(ctx, job, err)
	}
	podGroup, err = c.post(ctx, schedulerplugins.GVR(), wanted)
	if apierrors.IsAlreadyExists(err) {
		if theirs := c.madeByOperator(ctx, job); theirs != nil {
			fmt.Fprintf(c.io.ErrOut, "note: the training operator made PodGroup %s/%s itself\n", job.GetNamespace(), job.GetName())
			return job, theirs, nil
		}
	}
	if err != nil {
		return nil, nil, c.rollBack(ctx, job, err)
	}
	return job, podGroup, nil
}

func (c *creator) post(ctx context.Context, gvr schema.GroupVersionResource, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	options := metav1.CreateOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict}
	if c.dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	created, err := c.client.Dynamic.Resource(gvr).Namespace(obj.GetNamespace()).Create(ctx, obj, options)
	return created, operation("create", gvr, obj).Wrap(err)
}

// madeByOperator returns the PodGroup of the job's name if the training operator, told to manage gangs, was faster. Anybody
// else's is none of ours.
func (c *creator) madeByOperator(ctx context.Context, job *unstructured.Unstructured) *unstructured.Unstructured {
	pg, err := c.client.Dynamic.Resource(schedulerplugins.GVR()).Namespace(job.GetNamespace()).Get(ctx, job.GetName(), metav1.GetOptions{})
	if err != nil || !metav1.IsControlledBy(pg, job) {
		return nil
	}
	return pg
}

// explainJob adds what is known about a job that could not be created.
func (c *creator) explainJob(err error, job *unstructured.Unstructured) error {
	name := job.GetName()
	var lost *url.Error
	var dial *net.OpError
	switch {
	case apierrors.IsAlreadyExists(err):
		return failure.Errorf("create TFJob %s/%s: a TFJob of this name exists", job.GetNamespace(), name).
			WithHint("see it with `gangctl get %s`, remove it with `gangctl delete %s`, or choose another name", name, name)
	case errors.Is(err, context.Canceled):
		return failure.WithCode(failure.CodeInterrupted, "interrupted while creating TFJob %s/%s: it may exist", job.GetNamespace(), name).
			WithHint("see whether it does with `gangctl get %s`, and remove it with `gangctl delete %s`", name, name)
	case errors.As(err, &lost) && !(errors.As(err, &dial) && dial.Op == "dial"):
		return failure.From(err).WithHint("the request was sent, so the job may exist all the same: see `gangctl get %s`", name)
	}
	return err
}

// rollBack deletes the job again because its gang could not be declared: cause. It does so even if ctx was cancelled in
// between, and only if the job is still the one that was created.
func (c *creator) rollBack(ctx context.Context, job *unstructured.Unstructured, cause error) error {
	why := failure.From(cause)
	if apierrors.IsAlreadyExists(cause) {
		why = why.WithHint("a PodGroup of this name belongs to something else: choose another name, or remove it with "+
			"`kubectl -n %s delete podgroups.scheduling.x-k8s.io %s`",
			job.GetNamespace(), job.GetName())
	}
	if c.dryRun {
		return why
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	err := deleteJob(ctx, c.client, job.GetNamespace(), job.GetName(), job.GetUID())
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return failure.WithCode(why.Code, "%w; TFJob %s/%s was deleted again", why, job.GetNamespace(), job.GetName()).WithHint("%s", why.Hint)
	}
	return failure.WithCode(why.Code, "%w; TFJob %s/%s is left behind, because deleting it failed as well: %v",
		why, job.GetNamespace(), job.GetName(), failure.From(err)).
		WithHint("it may wait for its PodGroup for ever; remove it with `gangctl delete %s -n %s`", job.GetName(), job.GetNamespace())
}

func deleteJob(ctx context.Context, client *kube.Client, namespace, name string, uid types.UID) error {
	background := metav1.DeletePropagationBackground
	return client.Dynamic.Resource(tfjob.GVR()).Namespace(namespace).
		Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background})
}

func operation(verb string, gvr schema.GroupVersionResource, obj *unstructured.Unstructured) failure.Op {
	return failure.Op{Verb: verb, Resource: gvr, Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}
}
