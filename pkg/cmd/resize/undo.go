package resize

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/cmd/suspend"
	"github.com/gangctl/gangctl/pkg/gang/suspension"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// undoTimeout bounds what is done after a failure.
const undoTimeout = 30 * time.Second

// undo takes back what was written before something failed, the last first: cause. It does so even if ctx was cancelled in between. What
// cannot be taken back, the next run completes.
func (a *applier) undo(ctx context.Context, cause error) error {
	why := failure.From(cause)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	now, err := a.jobObject().Get(ctx, a.job.Meta.Name, metav1.GetOptions{})
	if err == nil && now.GetUID() != a.job.Meta.UID || apierrors.IsNotFound(err) {
		return why // there is nothing to take it back from
	}
	if err == nil {
		text, encodeErr := a.plan.Intent.Encode()
		switch kept := now.GetAnnotations()[resize.Annotation]; {
		case encodeErr != nil:
			return why
		case kept == "" && a.begun() && a.finishedAs(now):
			return nil // all of it was written, and the answer was lost
		case a.plan.Job.Before.GetAnnotations()[resize.Annotation] != "":
			hint := fmt.Sprintf("it stays as an earlier run left it; complete it with: gangctl resize %s -n %s", a.job.Meta.Name, a.job.Meta.Namespace)
			return why.WithHint("%s", strings.TrimPrefix(why.Hint+"\n"+hint, "\n")) // what the job and its group were is not known any more
		case kept != text:
			return why // nothing was written, or it is the change of another run
		}
	}
	var undone []string
	if err == nil {
		undone, err = a.takeBack(ctx, now)
	}
	if err != nil {
		hint := fmt.Sprintf("it is half done; complete it with: gangctl resize %s -n %s", a.job.Meta.Name, a.job.Meta.Namespace)
		return failure.WithCode(why.Code, "%w; undoing it failed as well: %w", why, failure.From(err)).WithHint("%s", strings.TrimPrefix(why.Hint+"\n"+hint, "\n"))
	}
	return failure.WithCode(why.Code, "%w; undone: %s", why, strings.Join(undone, ", ")).WithHint("%s", why.Hint)
}

// finishedAs reports whether the job is as the last write makes it.
func (a *applier) finishedAs(now *unstructured.Unstructured) bool {
	bare := func(u *unstructured.Unstructured) *unstructured.Unstructured { // whether it is suspended is another matter
		u = u.DeepCopy()
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", resize.Annotation)
		if len(u.GetAnnotations()) == 0 {
			u.SetAnnotations(nil)
		}
		unstructured.RemoveNestedField(u.Object, suspension.FieldOf(a.job.Kind.Group)...)
		return u
	}
	return a.plan.Job.Changed() && apply.Same(bare(now), bare(a.plan.Job.After))
}

// changedGroup is the group as this run has changed it, even if the answer was lost; nil if it has not.
func (a *applier) changedGroup(ctx context.Context) (*unstructured.Unstructured, error) {
	if a.group != nil || !a.plan.Group.Changed() {
		return a.group, nil
	}
	group := a.groupObject()
	now, err := group.Get(ctx, a.plan.Group.Before.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // it went with the pods
	}
	if err != nil {
		return nil, group.verb("get").Wrap(err)
	}
	if now.GetUID() != a.plan.Group.Before.GetUID() || !apply.Same(now, a.plan.Group.After) {
		return nil, nil
	}
	return now, nil
}

// takeBack restores the group, and then lets the job go on as it was. It returns what it has done, for people.
func (a *applier) takeBack(ctx context.Context, now *unstructured.Unstructured) (undone []string, err error) {
	group, err := a.changedGroup(ctx)
	if err != nil {
		return nil, err
	}
	if group != nil {
		if _, err := a.patchGroup(ctx, group, a.plan.Group.Before); err != nil {
			return nil, err
		}
		undone = append(undone, "the change of "+described(group))
	}
	fields := map[string]any{"metadata": map[string]any{"annotations": map[string]any{resize.Annotation: nil}}}
	if a.plan.Intent.Resume && suspend.Suspended(now) {
		if _, err := a.podsGone(ctx, suspendedState, undoTimeout); err != nil {
			return nil, err // resumed while pods end, it would fail
		}
		if err := unstructured.SetNestedField(fields, false, suspension.FieldOf(a.job.Kind.Group)...); err != nil {
			return nil, err
		}
		undone = append(undone, "the suspension of "+a.job.String())
	}
	if _, err = a.jobObject().patch(ctx, now, fields); err != nil {
		return nil, err
	}
	if len(undone) == 0 {
		undone = append(undone, "what "+a.job.String()+" kept of it")
	}
	return undone, nil
}
