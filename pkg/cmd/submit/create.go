package submit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// fieldManager is the name under which the API server records what gangctl wrote.
const fieldManager = "gangctl"

// creator creates a job and what belongs to it: everything, or nothing.
type creator struct {
	client *kube.Client
	io     *iostreams.IOStreams
	dryRun bool
	// tried are the jobs that the server has looked at in a dry run, as it would store them.
	tried map[*unstructured.Unstructured]*unstructured.Unstructured
	// user is who submits, once the server was asked.
	user *string
}

// create returns the objects as the server stored them. The job comes first, because the others carry its uid; members of a
// PodGroup that is not there yet just wait.
func (c *creator) create(ctx context.Context, wanted *render.Objects) (*render.Objects, error) {
	if err := c.rehearse(ctx, wanted); err != nil {
		return nil, err
	}
	if err := c.stamp(ctx, wanted.Job); err != nil {
		return nil, explainJob(err, wanted.Job)
	}
	c.sign(ctx, wanted.Job)
	job, err := c.post(ctx, wanted.Job, c.dryRun)
	if err != nil {
		return nil, explainJob(err, wanted.Job)
	}
	stored := &render.Objects{Job: job}
	for _, object := range wanted.Owned {
		owned := object.DeepCopy()
		render.Own(owned, job)
		created, err := c.post(ctx, owned, c.dryRun)
		if apierrors.IsAlreadyExists(err) {
			if created = c.madeByOperator(ctx, job, owned); created != nil {
				fmt.Fprintf(c.io.ErrOut, "note: the training operator made PodGroup %s/%s itself\n", created.GetNamespace(), created.GetName())
				err = nil
			}
		}
		if err != nil {
			return nil, c.rollBack(ctx, job, owned, err)
		}
		stored.Owned = append(stored.Owned, created)
	}
	return stored, nil
}

// rehearse lets the server check the group of the gang while nothing exists yet: a right or a resource that is missing, an
// admission webhook, or a PodGroup of the name, which cannot be the job's. A dry run is its own rehearsal.
func (c *creator) rehearse(ctx context.Context, wanted *render.Objects) error {
	if c.dryRun || len(wanted.Owned) == 0 || render.DialectOf(wanted.Owned[0]) == "" {
		return nil
	}
	group := wanted.Owned[0]
	_, err := c.post(ctx, group, true)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	// Most often the name is taken as a whole, by a job and its PodGroup. Then the job is what to talk about.
	if _, taken := c.post(ctx, wanted.Job, true); apierrors.IsAlreadyExists(taken) {
		return explainJob(taken, wanted.Job)
	}
	return explainOwned(err, group)
}

func (c *creator) post(ctx context.Context, obj *unstructured.Unstructured, dryRun bool) (*unstructured.Unstructured, error) {
	return c.postAs(ctx, resourceOf(obj), obj, dryRun)
}

// postAs creates an object of which it is known how it is served.
func (c *creator) postAs(ctx context.Context, gvr schema.GroupVersionResource, obj *unstructured.Unstructured, dryRun bool) (*unstructured.Unstructured, error) {
	options := metav1.CreateOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	created, err := c.at(gvr, obj).Create(ctx, obj, options)
	return created, operation("create", gvr, obj).Wrap(err)
}

// at is where an object is, or goes.
func (c *creator) at(gvr schema.GroupVersionResource, obj *unstructured.Unstructured) dynamic.ResourceInterface {
	if obj.GetNamespace() == "" {
		return c.client.Dynamic.Resource(gvr)
	}
	return c.client.Dynamic.Resource(gvr).Namespace(obj.GetNamespace())
}

// madeByOperator returns the PodGroup of a name if the training operator, told to manage gangs, made it for the job and was
// faster. Anybody else's is none of ours.
func (c *creator) madeByOperator(ctx context.Context, job, wanted *unstructured.Unstructured) *unstructured.Unstructured {
	found, err := c.client.Dynamic.Resource(resourceOf(wanted)).Namespace(job.GetNamespace()).Get(ctx, wanted.GetName(), metav1.GetOptions{})
	if err != nil || !metav1.IsControlledBy(found, job) {
		return nil
	}
	return found
}

// resourceOf is the resource under which an object is served.
func resourceOf(obj *unstructured.Unstructured) schema.GroupVersionResource {
	gvr, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind()) // it is right for every kind that is submitted
	return gvr
}

// explainJob adds what is known about a job that could not be created.
func explainJob(err error, job *unstructured.Unstructured) error {
	kind, namespace, name := job.GetKind(), job.GetNamespace(), job.GetName()
	see := fmt.Sprintf("`gangctl get %s -n %s`", name, namespace)
	remove := fmt.Sprintf("`gangctl delete %s -n %s`", name, namespace)
	var lost *url.Error
	var dial *net.OpError
	switch {
	case apierrors.IsAlreadyExists(err):
		return failure.Errorf("create %s %s/%s: a %s of this name exists", kind, namespace, name, kind).
			WithHint("see it with %s, remove it with %s, or choose another name", see, remove)
	case errors.Is(err, context.Canceled):
		return failure.WithCode(failure.CodeInterrupted, "interrupted while creating %s %s/%s: it may exist", kind, namespace, name).
			WithHint("see whether it does with %s, and remove it with %s", see, remove)
	case errors.As(err, &lost) && !(errors.As(err, &dial) && dial.Op == "dial"):
		return failure.From(err).WithHint("the request was sent, so the job may exist all the same: see %s", see)
	}
	return err
}

func operation(verb string, gvr schema.GroupVersionResource, obj *unstructured.Unstructured) failure.Op {
	return failure.Op{Verb: verb, Resource: gvr, Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}
}
