package submit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/iostreams"
	"github.com/gangctl/gangctl/pkg/kube"
	"github.com/gangctl/gangctl/pkg/render"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
)

// fieldManager is the name under which the API server records what gangctl wrote.
const fieldManager = "gangctl"

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
	if err := c.rehearse(ctx, objects, wanted); err != nil {
		return nil, nil, err
	}
	job, err = c.post(ctx, tfjob.GVR(), wanted, c.dryRun)
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
	podGroup, err = c.post(ctx, schedulerplugins.GVR(), wanted, c.dryRun)
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

// rehearse lets the server check the PodGroup while nothing exists yet: a right or a resource that is missing, an admission
// webhook, or a PodGroup of the name, which cannot be the job's. A dry run is its own rehearsal.
func (c *creator) rehearse(ctx context.Context, objects *render.Objects, job *unstructured.Unstructured) error {
	if c.dryRun || objects.PodGroup == nil {
		return nil
	}
	podGroup, err := render.Unstructured(objects.PodGroup)
	if err != nil {
		return err
	}
	_, err = c.post(ctx, schedulerplugins.GVR(), podGroup, true)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	// Most often the name is taken as a whole, by a job and its PodGroup. Then the job is what to talk about.
	if _, taken := c.post(ctx, tfjob.GVR(), job, true); apierrors.IsAlreadyExists(taken) {
		return c.explainJob(taken, job)
	}
	return explainPodGroup(err, podGroup)
}

func (c *creator) post(
	ctx context.Context, gvr schema.GroupVersionResource, obj *unstructured.Unstructured, dryRun bool,
) (*unstructured.Unstructured, error) {
	options := metav1.CreateOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict}
	if dryRun {
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
	namespace, name := job.GetNamespace(), job.GetName()
	see := fmt.Sprintf("`gangctl get %s -n %s`", name, namespace)
	remove := fmt.Sprintf("`gangctl delete %s -n %s`", name, namespace)
	var lost *url.Error
	var dial *net.OpError
	switch {
	case apierrors.IsAlreadyExists(err):
		return failure.Errorf("create TFJob %s/%s: a TFJob of this name exists", namespace, name).
			WithHint("see it with %s, remove it with %s, or choose another name", see, remove)
	case errors.Is(err, context.Canceled):
		return failure.WithCode(failure.CodeInterrupted, "interrupted while creating TFJob %s/%s: it may exist", namespace, name).
			WithHint("see whether it does with %s, and remove it with %s", see, remove)
	case errors.As(err, &lost) && !(errors.As(err, &dial) && dial.Op == "dial"):
		return failure.From(err).WithHint("the request was sent, so the job may exist all the same: see %s", see)
	}
	return err
}

func operation(verb string, gvr schema.GroupVersionResource, obj *unstructured.Unstructured) failure.Op {
	return failure.Op{Verb: verb, Resource: gvr, Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}
}
