package submit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang"
	jobkinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// fieldManager is the name under which the API server records what gangctl wrote.
const fieldManager = "gangctl"

// rollbackTimeout bounds the clean-up after a failed or interrupted submit.
const rollbackTimeout = 30 * time.Second

// creator creates what a batch holds: everything, or nothing.
type creator struct {
	client *kube.Client
	io     *iostreams.IOStreams
	// dryRun lets the server check everything and store nothing.
	dryRun bool
	// user is who submits; nil until the server reported it.
	user *string
}

// created is a batch as the server stored it.
type created struct {
	// others are the objects that were created, unchanged those that existed.
	others, unchanged []*unstructured.Unstructured
	jobs              []*render.Objects
	// stored are the objects that did not exist before, the last one first.
	stored []storedObject
}

// storedObject is an object that exists because of this command.
type storedObject struct {
	*unstructured.Unstructured
	gvr schema.GroupVersionResource
}

// create creates the other objects of a batch and then its jobs. If one fails, those before it are deleted again.
func (c *creator) create(ctx context.Context, b *batch, d *decisions, jobs []*rehearsal) (*created, error) {
	done := &created{}
	if err := c.createAll(ctx, b, d, jobs, done); err != nil {
		return nil, c.rollBack(ctx, done.stored, err)
	}
	return done, nil
}

func (c *creator) createAll(ctx context.Context, b *batch, d *decisions, jobs []*rehearsal, done *created) error {
	for i, other := range b.others {
		stored, existed, err := c.createOther(ctx, d.others[i], other, b.namespace)
		if err != nil {
			return err
		}
		if existed {
			done.unchanged = append(done.unchanged, stored)
			continue
		}
		done.others = append(done.others, stored)
		done.stored = append([]storedObject{{stored, d.others[i].Resource}}, done.stored...)
	}
	for _, r := range jobs {
		stored, err := c.createJob(ctx, r)
		if err != nil {
			return needingCreates(err, r)
		}
		done.jobs = append(done.jobs, stored)
		done.stored = append([]storedObject{{stored.Job, apply.ResourceOf(stored.Job)}}, done.stored...) // what the job owns goes with it
	}
	return nil
}

// createJob returns the objects of a job as the server stored them. The job comes first, because the others carry its uid; members
// of a PodGroup that does not exist yet just wait.
func (c *creator) createJob(ctx context.Context, r *rehearsal) (*render.Objects, error) {
	if err := c.check(ctx, r); err != nil {
		return nil, err
	}
	stored := &render.Objects{}
	if err := c.createNeeded(ctx, r, stored); err != nil {
		return nil, err
	}
	c.sign(ctx, r.Job)
	job, err := c.postJob(ctx, r)
	if err != nil {
		return nil, c.rollBackNeeded(ctx, stored.Needed, c.explainCreate(ctx, err, r.Job))
	}
	stored.Job = job
	if err := c.ownNeeded(ctx, stored); err != nil {
		return nil, c.rollBackJob(ctx, job, stored.Needed[0], err)
	}
	for _, object := range r.Owned {
		owned := object.DeepCopy()
		render.Own(owned, job)
		result, err := c.post(ctx, owned, c.dryRun)
		if apierrors.IsAlreadyExists(err) {
			if result = c.madeByOperator(ctx, job, owned); result != nil {
				fmt.Fprintf(c.io.ErrOut, "note: the training operator made PodGroup %s/%s itself\n", result.GetNamespace(), result.GetName())
				err = nil
			}
		}
		if err != nil {
			return nil, c.rollBackJob(ctx, job, owned, err)
		}
		stored.Owned = append(stored.Owned, result)
	}
	return stored, nil
}

// sign keeps on a job who submits it, for those who want to delete it.
func (c *creator) sign(ctx context.Context, job *unstructured.Unstructured) {
	if c.dryRun {
		return
	}
	if c.user == nil {
		c.user = new(c.client.User(ctx))
	}
	provenance.SetUser(job, *c.user)
}

// madeByOperator returns the PodGroup of a name if the training operator, configured to manage gangs, made it for the job and was
// faster. One of another controller is not the job's.
func (c *creator) madeByOperator(ctx context.Context, job, owned *unstructured.Unstructured) *unstructured.Unstructured {
	found, err := c.at(apply.ResourceOf(owned), owned).Get(ctx, owned.GetName(), metav1.GetOptions{})
	if err != nil || !metav1.IsControlledBy(found, job) {
		return nil
	}
	return found
}

// post creates an object of a job.
func (c *creator) post(ctx context.Context, obj *unstructured.Unstructured, dryRun bool) (*unstructured.Unstructured, error) {
	return c.postAs(ctx, apply.ResourceOf(obj), obj, dryRun)
}

// postAs creates an object under a resource.
func (c *creator) postAs(ctx context.Context, gvr schema.GroupVersionResource, obj *unstructured.Unstructured, dryRun bool) (*unstructured.Unstructured, error) {
	options := metav1.CreateOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	stored, err := c.at(gvr, obj).Create(ctx, obj, options)
	return stored, operation("create", gvr, obj).Wrap(err)
}

// at is where an object is, or goes.
func (c *creator) at(gvr schema.GroupVersionResource, obj *unstructured.Unstructured) dynamic.ResourceInterface {
	if obj.GetNamespace() == "" {
		return c.client.Dynamic.Resource(gvr)
	}
	return c.client.Dynamic.Resource(gvr).Namespace(obj.GetNamespace())
}

// rollBack deletes what was stored before something failed: cause. It does so even if ctx was cancelled in between.
func (c *creator) rollBack(ctx context.Context, stored []storedObject, cause error) error {
	why := failure.From(cause)
	if c.dryRun || len(stored) == 0 {
		return why
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	var gone, left []string
	var errs []error
	for _, object := range stored {
		if err := c.delete(ctx, object); err != nil {
			left, errs = append(left, named(object.Unstructured)), append(errs, failure.From(err))
			continue
		}
		gone = append(gone, named(object.Unstructured))
	}
	if len(left) == 0 {
		return failure.WithCode(why.Code, "%w; deleted again: %s", why, strings.Join(gone, ", ")).WithHint("%s", why.Hint)
	}
	hint := "remove what is left with kubectl, or submit what is missing in a file of its own"
	if why.Hint != "" {
		hint += "\n" + why.Hint
	}
	return failure.WithCode(why.Code, "%w; left behind, because deleting failed as well: %s: %w", why, strings.Join(left, ", "), errors.Join(errs...)).WithHint("%s", hint)
}

// rollBackJob deletes a job, and with it what it owns already, because an object that it owns could not be created: cause. It does
// so even if ctx was cancelled in between.
func (c *creator) rollBackJob(ctx context.Context, job, owned *unstructured.Unstructured, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	why := c.explainTaken(ctx, cause, owned, job)
	if c.dryRun {
		return why
	}
	err := c.delete(ctx, storedObject{job, apply.ResourceOf(job)})
	if err == nil {
		return failure.WithCode(why.Code, "%w; %s was deleted again", why, named(job)).WithHint("%s", why.Hint)
	}
	hint := fmt.Sprintf("it may wait for its %s indefinitely; remove it with `gangctl delete %s -n %s`", owned.GetKind(), job.GetName(), job.GetNamespace())
	if why.Hint != "" {
		hint += "\n" + why.Hint
	}
	return failure.WithCode(why.Code, "%w; %s is left behind, because deleting it failed as well: %v", why, named(job), failure.From(err)).WithHint("%s", hint)
}

// delete deletes an object if it is still the one that was stored; one that is gone or was replaced is no error.
func (c *creator) delete(ctx context.Context, object storedObject) error {
	background, uid := metav1.DeletePropagationBackground, object.GetUID()
	err := c.at(object.gvr, object.Unstructured).
		Delete(ctx, object.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// explainJob adds what is known about a job that the server did not accept, in a dry run or not.
func explainJob(err error, job *unstructured.Unstructured) error {
	if apierrors.IsAlreadyExists(err) {
		see, remove := commandsOf(job)
		return failure.Errorf("create %s: a %s of this name exists", named(job), job.GetKind()).
			WithHint("see it with %s, remove it with %s, or choose another name", see, remove)
	}
	return err
}

// explainJob is the function of that name, which reports of a job of the name that is being deleted what that waits for.
func (c *creator) explainJob(ctx context.Context, err error, job *unstructured.Unstructured) error {
	if apierrors.IsAlreadyExists(err) {
		there, unread := apply.Get(ctx, c.client.Dynamic, job)
		if unread == nil && there != nil && there.GetDeletionTimestamp() != nil {
			return failure.Errorf("create %s: a %s of this name is %s", named(job), job.GetKind(), gang.Deletion(there.GetFinalizers())).
				WithHint("submit it again when that one is gone, or choose another name; what keeps it shows `gangctl why-pending %s -n %s`", job.GetName(), job.GetNamespace())
		}
	}
	if failure.NotServed(err) {
		return c.explainVersion(ctx, err, job)
	}
	return explainJob(err, job)
}

// explainVersion adds to the error that a kind of job is not served in the version of a job in which ones it is; that costs discovery.
func (c *creator) explainVersion(ctx context.Context, err error, job *unstructured.Unstructured) error {
	gvk := job.GroupVersionKind()
	mapper, unread := c.client.RESTMapper(ctx, gvk.Group)
	if unread != nil {
		return err
	}
	served, _ := mapper.RESTMappings(gvk.GroupKind()) // an error where there are none
	var versions []string
	for _, m := range served {
		versions = append(versions, m.GroupVersionKind.Version)
	}
	if len(versions) == 0 || slices.Contains(versions, gvk.Version) {
		return err
	}
	why := failure.From(err)
	return failure.WithCode(why.Code, "%w, but %s", why, strings.Join(versions, " and ")).
		WithHint("write it as %s, whose fields may be others; or %s", gvk.GroupKind().WithVersion(versions[0]).GroupVersion(), why.Hint)
}

// explainCreate adds what is known about a job that could not be created, and may exist all the same. After a dry run it does not.
func (c *creator) explainCreate(ctx context.Context, err error, job *unstructured.Unstructured) error {
	see, remove := commandsOf(job)
	var lost lostError
	switch {
	case c.dryRun:
	case errors.Is(err, context.Canceled):
		return failure.WithCode(failure.CodeInterrupted, "interrupted while creating %s: it may exist", named(job)).
			WithHint("see whether it does with %s, and remove it with %s", see, remove)
	case errors.As(err, &lost):
		return failure.From(err).WithHint("the request was sent, so the job may exist all the same: see %s, and remove it with %s before you try again", see, remove)
	}
	return c.explainJob(ctx, err, job)
}

// commandsOf are the commands that show a job and remove it.
func commandsOf(job *unstructured.Unstructured) (see, remove string) {
	return fmt.Sprintf("`gangctl get %s -n %s`", job.GetName(), job.GetNamespace()), fmt.Sprintf("`gangctl delete %s -n %s`", job.GetName(), job.GetNamespace())
}

// explainTaken is explainOwned, which names the job whose object has the name: usually the name is that of a job of another kind. One of an earlier job of the name and the
// kind is about to go.
func (c *creator) explainTaken(ctx context.Context, err error, obj, mine *unstructured.Unstructured) *failure.Error {
	why := explainOwned(err, obj)
	if !apierrors.IsAlreadyExists(err) {
		return why
	}
	found, unread := c.at(apply.ResourceOf(obj), obj).Get(ctx, obj.GetName(), metav1.GetOptions{})
	if unread != nil {
		return why
	}
	owner, reader := jobOwning(found)
	switch {
	case owner == nil:
		return why
	case owner.Kind == mine.GetKind() && owner.Name == mine.GetName():
		return failure.Errorf("create %s: it is left of an earlier %s", named(obj), named(mine)).
			WithHint("the garbage collector removes it: try again in a moment, or remove it with `kubectl -n %s delete %s %s`", obj.GetNamespace(), apply.ResourceOf(obj).GroupResource(), obj.GetName())
	case render.DialectOf(obj) != "" && obj.GetName() != mine.GetName(): // a copy, whose pods still name the gang of what it was copied from
		return failure.Errorf("create %s: it is that of %s %s/%s, and the pods of %s name it as their gang", named(obj), reader.Kind, obj.GetNamespace(), owner.Name, named(mine)).
			WithHint("change the name of the gang in its pods, too, or repeat that job under another name: gangctl resubmit %s --name %s -n %s", reader.Argument(owner.Name), mine.GetName(), obj.GetNamespace())
	}
	return takenBy(named(obj), reader, obj.GetNamespace(), owner.Name)
}

// jobOwning is the job that owns an object, as the controller or, as submit makes it, without being that; nil if none does.
func jobOwning(object *unstructured.Unstructured) (*metav1.OwnerReference, gang.JobReader) {
	owners := object.GetOwnerReferences()
	for i := range owners {
		if reader, known := jobkinds.ByKind(gang.OwnerKind(&owners[i])); known {
			return &owners[i], reader
		}
	}
	return nil, gang.JobReader{}
}

// takenBy is the error for something that cannot be created, as a job of another kind has it.
func takenBy(what string, reader gang.JobReader, namespace, name string) *failure.Error {
	job := reader.Argument(name)
	return failure.Errorf("create %s: it is that of %s %s/%s", what, reader.Kind, namespace, name).
		WithHint("choose another name, or see that job with `gangctl get %s -n %s` and remove it with `gangctl delete %s -n %s`", job, namespace, job, namespace)
}

// explainOwned adds what is known about an object of a job that could not be created. Its name and namespace are those of obj.
func explainOwned(err error, obj *unstructured.Unstructured) *failure.Error {
	why := failure.From(err)
	if apierrors.IsAlreadyExists(err) {
		return why.WithHint("choose another name; whose the %s is shows `kubectl -n %s get %s %s -o yaml`, and if nothing uses it, it can be deleted",
			obj.GetKind(), obj.GetNamespace(), apply.ResourceOf(obj).GroupResource(), obj.GetName())
	}
	return why
}

func operation(verb string, gvr schema.GroupVersionResource, obj *unstructured.Unstructured) failure.Op {
	return failure.Op{Verb: verb, Resource: gvr, Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// named reads like `ConfigMap research/settings`.
func named(u *unstructured.Unstructured) string {
	return u.GetKind() + " " + strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")
}
