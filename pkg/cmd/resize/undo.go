package resize

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

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/suspension"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// undoTimeout bounds how long what is done after a failure waits for pods, and how long its last write may take.
const undoTimeout = 30 * time.Second

// undo takes back what was written before something failed, the last first: cause. It does so even if ctx was cancelled in between. What
// cannot be taken back, the next run completes.
func (a *applier) undo(ctx context.Context, cause error) error {
	why := failure.From(cause)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*undoTimeout) // half of it is for pods that end
	defer cancel()
	now, err := a.jobObject().Get(ctx, a.job.Meta.Name, metav1.GetOptions{})
	err = a.jobObject().verb("get").Wrap(err)
	if err == nil && now.GetUID() != a.job.Meta.UID || apierrors.IsNotFound(err) {
		if apierrors.IsNotFound(cause) {
			return a.deletedMeanwhile()
		}
		return why // there is nothing to take it back from
	}
	if err == nil {
		switch kept := now.GetAnnotations()[resize.Annotation]; {
		case a.plan.Launcher && a.keeps(kept) && a.finishedAs(now):
			return unlaunched(a.job, why)
		case kept == "" && a.begun() && a.finishedAs(now):
			return nil // all of it was written, and the answer was lost
		case !a.keeps(kept):
			return a.unwrite(ctx, why) // nothing was written, or another run has taken it back
		}
	}
	var undone []string
	if err == nil {
		undone, err = a.takeBack(ctx, now, undoTimeout)
	}
	if err != nil {
		return failure.WithCode(why.Code, "%w; undoing it failed as well: %w", why, failure.From(err)).WithHint("%s", lines(why.Hint, "it is half done; "+goOn(a.job)))
	}
	return failure.WithCode(why.Code, "%w; undone: %s", why, strings.Join(undone, ", ")).WithHint("%s", why.Hint)
}

// keeps reports whether what a job keeps is the change of this run, or of the one that it completes.
func (a *applier) keeps(kept string) bool {
	text, err := a.plan.Intent.Encode()
	return err == nil && kept != "" && (kept == text || kept == a.plan.Job.Before.GetAnnotations()[resize.Annotation])
}

// goOn is how to end what has begun, for hints.
func goOn(job *gang.Job) string {
	line := again(job)
	return fmt.Sprintf("complete it with: %s\nor take it back with: %s --abort", line, line)
}

// again is the command for a job, without the change.
func again(job *gang.Job) string {
	return resize.Line(job, []string{resize.Named(job)})
}

// lines are those texts that are not empty, each on a line.
func lines(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "\n")
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

// restoreGroup makes the group what it was before the change began, even if the answer to that was lost. One that is gone went with the pods, and
// one that is neither as this run found it nor as it changed it is another client's. It returns whether it wrote.
func (a *applier) restoreGroup(ctx context.Context) (bool, error) {
	p := a.plan
	if p.Original == nil {
		return false, nil
	}
	group := a.groupObject()
	now, err := group.Get(ctx, p.Original.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, group.verb("get").Wrap(err)
	}
	ours := now.GetUID() == p.Group.Before.GetUID() && (apply.Same(now, p.Group.After) || apply.Same(now, p.Group.Before))
	if !ours || apply.Same(now, p.Original) {
		return false, nil
	}
	err = a.writeGroup(ctx, now, p.Original)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// unwrite makes the group again what it was before this run wrote it, as another client has the job go another way: cause. A group that others
// have written since is theirs.
func (a *applier) unwrite(ctx context.Context, cause error) error {
	wrote := a.overwritten
	if wrote.After == nil {
		return cause
	}
	_, err := a.patchGroup(ctx, wrote.After, wrote.Before)
	if err == nil || errors.Is(err, errChanged) || apierrors.IsNotFound(err) {
		return cause
	}
	why := failure.From(cause)
	return failure.WithCode(why.Code, "%w; undoing the change of %s failed as well: %w", why, apply.Describe(wrote.Before), failure.From(err)).WithHint("%s", why.Hint)
}

// takeBack restores the group, and then lets the job go on as it was. It returns what it has done, for people.
func (a *applier) takeBack(ctx context.Context, now *unstructured.Unstructured, timeout time.Duration) (undone []string, err error) {
	wrote, err := a.restoreGroup(ctx)
	if err != nil {
		return nil, err
	}
	if wrote {
		undone = append(undone, "the change of "+apply.Describe(a.plan.Original))
	}
	fields := map[string]any{"metadata": map[string]any{"annotations": map[string]any{resize.Annotation: nil}}}
	if a.plan.Intent.Resume && suspension.Suspended(now) {
		if err := a.ended(ctx, timeout); err != nil {
			return nil, err // resumed while pods end, it would fail
		}
		if err := unstructured.SetNestedField(fields, false, suspension.FieldOf(a.job.Kind.Group)...); err != nil {
			return nil, err
		}
		undone = append(undone, "the suspension of "+a.job.String())
	}
	write, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout) // what pods took is not this request's
	defer cancel()
	if _, err = a.jobObject().patch(write, now, fields); errors.Is(err, errChanged) {
		return nil, a.unwrite(write, err)
	} else if err != nil {
		return nil, err
	}
	if len(undone) == 0 {
		undone = append(undone, "what "+a.job.String()+" kept of it")
	}
	return undone, nil
}

// ended returns when the pods of a job that is to go on are gone.
func (a *applier) ended(ctx context.Context, timeout time.Duration) error {
	left, err := a.podsGone(ctx, suspendedState, timeout)
	if errors.Is(err, context.DeadlineExceeded) && left > 0 {
		return a.stillTerminating(left, timeout)
	}
	return err
}
