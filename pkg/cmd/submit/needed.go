package submit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// checkNeeded lets the server check what a job needs to exist before it does.
func (c *creator) checkNeeded(ctx context.Context, r *rehearsal) error {
	for _, object := range r.Needed {
		if _, err := c.tried(ctx, object); err != nil {
			return explainNeeded(err, object)
		}
	}
	return nil
}

// explainNeeded adds to an error of what a job needs what can be done without it.
func explainNeeded(err error, object *unstructured.Unstructured) *failure.Error {
	why := explainOwned(err, object)
	if why.Hint != "" {
		return why
	}
	return why.WithHint("the runtime names no scheduler of gangs, and a TrainJob cannot: ask an administrator for one that has spec.template.spec.replicatedJobs[].template.spec.template.spec.schedulerName, " +
		"or for the right to create it; or add --dialect none to let members start one by one")
}

// createNeeded creates what a job needs to exist before it does.
func (c *creator) createNeeded(ctx context.Context, r *rehearsal, stored *render.Objects) error {
	for _, object := range r.Needed {
		result, err := c.post(ctx, object, c.dryRun)
		if err != nil {
			return c.rollBackNeeded(ctx, stored.Needed, explainNeeded(err, object))
		}
		stored.Needed = append(stored.Needed, result)
	}
	return nil
}

// seenEvery is how often a job is tried again that is refused because what it needs has not been seen yet.
const seenEvery = 500 * time.Millisecond

// postJob creates a job, as soon as webhooks have seen what it needs. With --dry-run=server that does not exist: the server checks the job as it can be
// checked without.
func (c *creator) postJob(ctx context.Context, r *rehearsal) (*unstructured.Unstructured, error) {
	if !c.dryRun || r.Trial == nil {
		unseen := func(err error) bool {
			return !c.dryRun && slices.ContainsFunc(r.Needed, trainjob.Needs) && trainjob.Unseen(err)
		}
		var stored *unstructured.Unstructured
		err := apply.WhenSeen(ctx, seenEvery, unseen, func(ctx context.Context) (err error) {
			stored, err = c.post(ctx, r.Job, c.dryRun)
			if !c.dryRun && ambiguous(err) {
				stored, err = c.resolve(ctx, r.Job, err)
			}
			return err
		})
		return stored, err
	}
	stored, err := c.post(ctx, r.Trial, true)
	if err != nil {
		return nil, err
	}
	job := r.Job.DeepCopy()
	job.SetUID(stored.GetUID()) // what it owns names it
	return job, nil
}

// ownNeeded has a stored job own what it needed, so that it goes when the job does.
func (c *creator) ownNeeded(ctx context.Context, stored *render.Objects) error {
	if c.dryRun {
		return nil
	}
	for i, object := range stored.Needed {
		owned := &unstructured.Unstructured{Object: map[string]any{}}
		render.Own(owned, stored.Job)
		owned.SetUID(object.GetUID())
		patch, err := json.Marshal(owned.Object)
		if err != nil {
			return fmt.Errorf("patch %s: %w", named(object), err)
		}
		gvr := apply.ResourceOf(object)
		result, err := c.at(gvr, object).Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
		if err != nil {
			return c.rollBackNeeded(ctx, stored.Needed, operation("patch", gvr, object).Wrap(err))
		}
		stored.Needed[i] = result
	}
	return nil
}

// rollBackNeeded deletes again what a job needed, because something failed after that: cause. It does so even if ctx was cancelled in
// between.
func (c *creator) rollBackNeeded(ctx context.Context, needed []*unstructured.Unstructured, cause error) error {
	if c.dryRun || len(needed) == 0 {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	var errs []error
	for _, object := range needed {
		if err := c.delete(ctx, storedObject{object, apply.ResourceOf(object)}); err != nil {
			errs = append(errs, fmt.Errorf("%s is left behind: %w", named(object), failure.From(err)))
		}
	}
	if len(errs) == 0 {
		return cause
	}
	why := failure.From(cause)
	return failure.WithCode(why.Code, "%w; %w", why, errors.Join(errs...)).WithHint("%s", why.Hint)
}

// asStored is the job as the server would store it, where it was checked in another form.
func (r *rehearsal) asStored() *unstructured.Unstructured {
	if r.Trial == nil {
		return r.stored
	}
	stored := r.stored.DeepCopy()
	spec, _ := stored.Object["spec"].(map[string]any)
	written, _ := r.Job.Object["spec"].(map[string]any)
	tried, _ := r.Trial.Object["spec"].(map[string]any)
	for key := range written {
		if fmt.Sprint(written[key]) != fmt.Sprint(tried[key]) {
			spec[key] = written[key]
		}
	}
	return stored
}
