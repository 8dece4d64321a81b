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

// objects are what is submitted: a TFJob, and its PodGroup, which is nil if the gang needs none.
type objects struct{ job, podGroup *unstructured.Unstructured }

// create returns the objects as the server stored them. The job comes first, because the PodGroup carries its uid; members of a
// PodGroup that is not there yet just wait.
func (c *creator) create(ctx context.Context, wanted *objects) (*objects, error) {
	if err := c.rehearse(ctx, wanted); err != nil {
		return nil, err
	}
	job, err := c.post(ctx, tfjob.GVR(), wanted.job, c.dryRun)
	if err != nil {
		return nil, explainJob(err, wanted.job)
	}
	if wanted.podGroup == nil {
		return &objects{job: job}, nil
	}
	owned := wanted.podGroup.DeepCopy()
	render.Own(owned, job)
	podGroup, err := c.post(ctx, schedulerplugins.GVR(), owned, c.dryRun)
	if apierrors.IsAlreadyExists(err) {
		if theirs := c.madeByOperator(ctx, job, owned.GetName()); theirs != nil {
			fmt.Fprintf(c.io.ErrOut, "note: the training operator made PodGroup %s/%s itself\n", theirs.GetNamespace(), theirs.GetName())
			return &objects{job: job, podGroup: theirs}, nil
		}
	}
	if err != nil {
		return nil, c.rollBack(ctx, job, owned, err)
	}
	return &objects{job: job, podGroup: podGroup}, nil
}

// rehearse lets the server check the PodGroup while nothing exists yet: a right or a resource that is missing, an admission
// webhook, or a PodGroup of the name, which cannot be the job's. A dry run is its own rehearsal.
func (c *creator) rehearse(ctx context.Context, wanted *objects) error {
	if c.dryRun || wanted.podGroup == nil {
		return nil
	}
	_, err := c.post(ctx, schedulerplugins.GVR(), wanted.podGroup, true)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	// Most often the name is taken as a whole, by a job and its PodGroup. Then the job is what to talk about.
	if _, taken := c.post(ctx, tfjob.GVR(), wanted.job, true); apierrors.IsAlreadyExists(taken) {
		return explainJob(taken, wanted.job)
	}
	return explainPodGroup(err, wanted.podGroup)
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

// madeByOperator returns the PodGroup of a name if the training operator, told to manage gangs, made it for the job and was
// faster. Anybody else's is none of ours.
func (c *creator) madeByOperator(ctx context.Context, job *unstructured.Unstructured, name string) *unstructured.Unstructured {
	pg, err := c.client.Dynamic.Resource(schedulerplugins.GVR()).Namespace(job.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
	if err != nil || !metav1.IsControlledBy(pg, job) {
		return nil
	}
	return pg
}

// explainJob adds what is known about a job that could not be created.
func explainJob(err error, job *unstructured.Unstructured) error {
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
