package resize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/suspend"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
	"github.com/gangctl/gangctl/pkg/gang/suspension"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// applier does what was planned. Three writes change what is stored, each whole or not at all:
//
//	begin   the job is suspended, and keeps what it is to become
//	group   the group object is changed
//	finish  the job is changed, goes on, and no longer keeps anything
//
// After any of them, a run that finds what the job keeps comes to the same end. Where one write is enough, there is no other. A job with a launcher
// that has to be made again keeps its change until that is done: the MPI Operator makes it of what the job then is, also while it is suspended.
type applier struct {
	client            *kube.Client
	io                *iostreams.IOStreams
	job               *gang.Job
	plan              *resize.Plan
	timeout, interval time.Duration

	// stored is the job as it was written last.
	stored *unstructured.Unstructured
	// overwritten is the group before and after this run wrote it last; empty if it did not.
	overwritten resize.Object
}

func newApplier(client *kube.Client, io *iostreams.IOStreams, job *gang.Job, plan *resize.Plan, timeout, interval time.Duration) *applier {
	return &applier{client: client, io: io, job: job, plan: plan, timeout: timeout, interval: interval, stored: plan.Job.Before}
}

// apply does it, and undoes what it has done if a step fails.
func (a *applier) apply(ctx context.Context) error {
	p := a.plan
	if !p.Restarts && (!p.Group.Changed() || !p.Job.Changed()) && !a.begun() {
		return a.applyAtOnce(ctx)
	}
	if err := a.begin(ctx); errors.Is(err, errChanged) {
		return err // nothing is written, and what the job keeps now is another run's
	} else if err != nil {
		return a.undo(ctx, err)
	}
	if err := a.await(ctx); err != nil {
		return err // undone, it would be resumed while pods end, which fails a job
	}
	for _, step := range []func(context.Context) error{a.rehearseFinish, a.changeGroup, a.finish} {
		if err := step(ctx); err != nil {
			return a.undo(ctx, err)
		}
	}
	if err := a.launch(ctx); err != nil {
		return unlaunched(a.job, err)
	}
	return nil
}

// launch has the launcher made again of the job as it now is, which only then forgets its change.
func (a *applier) launch(ctx context.Context) error {
	if !a.plan.Launcher || !a.begun() {
		return nil
	}
	if err := a.remakeLauncher(ctx); err != nil {
		return err
	}
	_, err := a.jobObject().patch(ctx, a.stored, map[string]any{"metadata": map[string]any{"annotations": map[string]any{resize.Annotation: nil}}})
	return err
}

// unlaunched is why a job that is changed still has its old launcher.
func unlaunched(job *gang.Job, cause error) error {
	why := failure.From(cause)
	return failure.WithCode(why.Code, "%w; the job is changed, its launcher is not", why).WithHint("%s", lines(why.Hint, "complete it with: "+again(job)))
}

// applyAtOnce does what is one write. The operator makes a launcher again from what the job is then.
func (a *applier) applyAtOnce(ctx context.Context) error {
	if a.plan.Group.Changed() {
		return a.changeGroup(ctx)
	}
	if err := a.finish(ctx); err != nil {
		return err
	}
	return a.remakeLauncher(ctx)
}

// begun reports whether the job keeps what it is to become.
func (a *applier) begun() bool { return a.stored.GetAnnotations()[resize.Annotation] != "" }

func (a *applier) jobObject() object {
	return objectAt(a.client.Dynamic, a.job.Resource(), a.plan.Job.Before)
}

func (a *applier) groupObject() object {
	return objectAt(a.client.Dynamic, groupResource(a.plan.Gang.Decl), a.plan.Group.Before)
}

// rehearse lets the API server check what would be written, as far as it can while nothing is.
func (a *applier) rehearse(ctx context.Context) error {
	if a.plan.Group.Changed() {
		err := a.retried(ctx, func(ctx context.Context) error {
			_, err := a.patchGroup(ctx, a.plan.Group.Before, a.plan.Group.After, metav1.DryRunAll)
			return tried(a.io, err)
		})
		if err != nil && a.plan.Job.Changed() {
			err = failure.Needing(err, a.jobObject().verb("patch")) // which comes next
		}
		if err != nil {
			return err
		}
	}
	if slices.Contains([]string{batchv1.GroupName, jobset.Group}, a.job.Kind.Group) && a.plan.Restarts && !suspension.Suspended(a.stored) {
		return nil // what of its pods can be changed depends on whether it is suspended
	}
	return a.rehearseFinish(ctx)
}

// tried is the error of a dry run. It is noted where an admission webhook takes none: only the write itself shows then whether it is accepted.
func tried(io *iostreams.IOStreams, err error) error {
	if failure.OutcomeOf(err) != failure.OutcomeUntried {
		return err
	}
	fmt.Fprintf(io.ErrOut, "note: the API server could not check it before: %s\n", failure.From(err).Message)
	return nil
}

// retryTimeout bounds how long a request that changes nothing is made again.
const retryTimeout = 30 * time.Second

// retried makes a request that changes nothing again while the API server has trouble answering it. The error is that of the last time.
func (a *applier) retried(ctx context.Context, request func(context.Context) error) error {
	var failed error
	err := wait.PollUntilContextTimeout(ctx, a.interval, retryTimeout, true, func(ctx context.Context) (bool, error) {
		failed = request(ctx)
		if failure.Transient(failed) {
			return false, nil
		}
		return failed == nil, failed
	})
	return cmp.Or(failed, err)
}

// begin suspends the job, in the same write in which it comes to keep its change.
func (a *applier) begin(ctx context.Context) error {
	text, err := a.plan.Intent.Encode()
	if err != nil {
		return failure.Errorf("%s: %w", jobs.Op(a.job, "resize"), err)
	}
	fields := map[string]any{"metadata": map[string]any{"annotations": map[string]any{resize.Annotation: text}}}
	if a.plan.Restarts && !suspension.Suspended(a.stored) {
		if err := unstructured.SetNestedField(fields, true, suspension.FieldOf(a.job.Kind.Group)...); err != nil {
			return err
		}
	} else if a.begun() {
		return nil
	}
	stored, err := a.jobObject().patch(ctx, a.stored, fields)
	if err != nil {
		return err
	}
	a.stored = stored
	if a.plan.Restarts && !suspension.Suspended(stored) {
		return failure.Errorf("%s: %w: the API server dropped %s: its operator is older than 1.7", jobs.Op(a.job, "suspend"), errFixed, strings.Join(suspension.FieldOf(a.job.Kind.Group), ".")).
			WithHint("with --recreate it is deleted and made again under its name")
	}
	return nil
}

// await returns when the pods of the job are gone, and its controller has recorded that.
func (a *applier) await(ctx context.Context) error {
	if !a.plan.Restarts {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	left, err := a.podsGone(limited, suspendedState, a.timeout)
	if err == nil {
		err = a.recorded(limited)
	}
	hint := "it stays suspended and keeps its change; " + goOn(a.job)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return failure.WithCode(failure.CodeInterrupted, "interrupted; %s is suspended, and not changed yet", a.job).WithHint("%s", hint)
	case errors.Is(err, context.DeadlineExceeded) && left > 0:
		return a.stillTerminating(left, a.timeout).WithHint("%s", hint)
	case errors.Is(err, context.DeadlineExceeded):
		return failure.WithCode(failure.CodeTimedOut, "%s: after %s its controller has not reported it as suspended", jobs.Op(a.job, "resize"), a.timeout).WithHint("%s", hint)
	}
	if a.gone(ctx, err) {
		return a.deletedMeanwhile()
	}
	why := failure.From(err)
	return why.WithHint("%s", lines(why.Hint, hint))
}

// gone reports whether something failed as the job is there no more, or another one of its name.
func (a *applier) gone(ctx context.Context, failed error) bool {
	if !apierrors.IsNotFound(failed) {
		return false
	}
	now, err := a.jobObject().Get(ctx, a.job.Meta.Name, metav1.GetOptions{})
	return apierrors.IsNotFound(err) || err == nil && now.GetUID() != a.job.Meta.UID
}

// deletedMeanwhile is the error of a change whose job another command has deleted: there is nothing to complete or to take back.
func (a *applier) deletedMeanwhile() *failure.Error {
	return failure.WithCode(failure.CodeJobFailed, "%s: it was deleted meanwhile", jobs.Op(a.job, "resize"))
}

// stillTerminating reports pods of the job that have not gone in time.
func (a *applier) stillTerminating(left int, timeout time.Duration) *failure.Error {
	return failure.WithCode(failure.CodeTimedOut, "%s: %s still terminating after %s", jobs.Op(a.job, "resize"), phrase.Count(left, "pod"), timeout)
}

// recorded returns when the controller of the job has acted on its suspension: only then is what is written taken over.
func (a *applier) recorded(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, a.interval, true, func(ctx context.Context) (bool, error) {
		now, err := a.jobObject().Get(ctx, a.job.Meta.Name, metav1.GetOptions{})
		if failure.Transient(err) {
			return false, nil
		}
		if err != nil {
			return false, a.jobObject().verb("get").Wrap(err)
		}
		return a.reportsSuspended(now)
	})
}

// reportsSuspended reports whether the controller of a job has acted on its suspension, of the kinds whose controllers take changes only then. One that
// has not seen the job yet makes its pods of what it becomes.
func (a *applier) reportsSuspended(now *unstructured.Unstructured) (bool, error) {
	switch a.job.Kind.GroupKind() {
	case batchjob.Reader().GroupKind:
		job, err := jobs.Read(now)
		if err != nil {
			return false, failure.Errorf("%s: %w", jobs.Op(a.job, "get"), err)
		}
		status := job.BatchJob.Status
		suspended := func(c batchv1.JobCondition) bool {
			return c.Type == batchv1.JobSuspended && c.Status == corev1.ConditionTrue
		}
		return status.Active == 0 && (status.StartTime == nil || slices.ContainsFunc(status.Conditions, suspended)), nil
	case jobset.Reader().GroupKind:
		return !a.job.Seen || jobset.ReportsSuspended(now), nil
	case ray.JobReader().GroupKind:
		return !a.job.Seen || ray.ReportsSuspended(now), nil
	}
	return true, nil
}

// suspendedState is the state, for podsGone, of a job that keeps its finished pods.
const suspendedState = "suspended"

// podsGone returns when the job has no pods any more, or how many it still has when the time is up.
func (a *applier) podsGone(ctx context.Context, state string, timeout time.Duration) (left int, err error) {
	reported := false
	var failed error
	err = wait.PollUntilContextTimeout(ctx, a.interval, timeout, true, func(ctx context.Context) (bool, error) {
		pods, err := jobs.PodsOfNow(ctx, a.client, a.job)
		if failed = err; failure.Transient(err) && ctx.Err() == nil {
			return false, nil // the job stays as it is meanwhile
		}
		if err != nil {
			return false, err
		}
		if state == suspendedState {
			pods = suspend.Leftover(pods)
		}
		if left = len(pods); left > 0 && !reported {
			reported = true
			fmt.Fprintf(a.io.ErrOut, "%s is %s; waiting for its pods to end: %d\n", a.job.Meta.Name, state, left)
		}
		return left == 0, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && failed != nil && left == 0 {
		err = failed // how many there are was never seen
	}
	return left, err
}

// finished are the fields of the last write: what was planned, and the job goes on.
func (a *applier) finished() (map[string]any, error) {
	fields, err := difference(a.plan.Job.Before, a.plan.Job.After)
	if err != nil {
		return nil, err
	}
	if a.begun() && !a.plan.Launcher {
		err = unstructured.SetNestedField(fields, nil, "metadata", "annotations", resize.Annotation)
	}
	if err == nil && a.plan.Intent.Resume && suspension.Suspended(a.stored) {
		err = unstructured.SetNestedField(fields, false, suspension.FieldOf(a.job.Kind.Group)...)
	}
	return fields, err
}

// rehearseFinish lets the API server check the job as it will be.
func (a *applier) rehearseFinish(ctx context.Context) error {
	fields, err := a.finished()
	if err != nil {
		return err
	}
	err = a.retried(ctx, func(ctx context.Context) error {
		_, err := a.jobObject().patch(ctx, a.stored, fields, metav1.DryRunAll)
		return tried(a.io, err)
	})
	return explainImmutable(jobs.Op(a.job, "resize"), err)
}

// errFixed is in the error of a job that cannot be changed where it is, and could be made again.
var errFixed = errors.New("it cannot be changed where it is")

// explainImmutable reports which fields of an object cannot be changed, instead of what they would have been.
func explainImmutable(op failure.Op, err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || !strings.Contains(err.Error(), "immutable") || status.Status().Details == nil {
		return err
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if !slices.Contains(fields, cause.Field) {
			fields = append(fields, cause.Field)
		}
	}
	return failure.Errorf("%s: %w: the API server does not let these fields change: %s", op, errFixed, strings.Join(fields, ", ")).
		WithHint("with --recreate it is deleted and made again under its name, with all members new")
}

// finish changes the job and lets it go on.
func (a *applier) finish(ctx context.Context) error {
	fields, err := a.finished()
	if err != nil {
		return err
	}
	stored, err := a.jobObject().patch(ctx, a.stored, fields)
	if err == nil {
		a.stored = stored
	}
	return explainImmutable(jobs.Op(a.job, "resize"), err)
}

// changeGroup changes the group object. One that is gone was made by the operator of the job, which makes it again.
func (a *applier) changeGroup(ctx context.Context) error {
	if !a.plan.Group.Changed() {
		return nil
	}
	err := a.writeGroup(ctx, a.plan.Group.Before, a.plan.Group.After)
	switch {
	case apierrors.IsNotFound(err) && a.plan.Restarts:
		fmt.Fprintf(a.io.ErrOut, "note: %s went with the pods; the operator makes it again\n", apply.Describe(a.plan.Group.Before))
		return nil
	case errors.Is(err, errChanged) && a.groupChanged(ctx):
		return nil // by another run that completes the same change
	}
	return err
}

// groupChanged reports whether the group already is what it is to become.
func (a *applier) groupChanged(ctx context.Context) bool {
	now, err := a.groupObject().Get(ctx, a.plan.Group.After.GetName(), metav1.GetOptions{})
	return err == nil && now.GetUID() == a.plan.Group.Before.GetUID() && apply.Same(now, a.plan.Group.After)
}

// writeGroup changes the group, and remembers what that replaced.
func (a *applier) writeGroup(ctx context.Context, before, after *unstructured.Unstructured) error {
	stored, err := a.patchGroup(ctx, before, after)
	if err == nil {
		a.overwritten = resize.Object{Before: before, After: stored}
	}
	return err
}

func (a *applier) patchGroup(ctx context.Context, before, after *unstructured.Unstructured, dryRun ...string) (*unstructured.Unstructured, error) {
	fields, err := difference(before, after)
	if err != nil {
		return nil, err
	}
	return a.groupObject().patch(ctx, before, fields, dryRun...)
}

// remakeLauncher deletes the Job in which the MPI Operator runs the launcher: it does not change it.
func (a *applier) remakeLauncher(ctx context.Context) error {
	if !a.plan.Launcher {
		return nil
	}
	launchers := a.client.Dynamic.Resource(batchv1.SchemeGroupVersion.WithResource("jobs")).Namespace(a.job.Meta.Namespace)
	op := failure.Op{Verb: "delete", Resource: batchv1.SchemeGroupVersion.WithResource("jobs"), Kind: "Job", Namespace: a.job.Meta.Namespace, Name: a.job.Meta.Name + "-launcher"}
	launcher, err := launchers.Get(ctx, op.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return op.Wrap(err)
	}
	if !metav1.IsControlledBy(launcher, a.stored) {
		return nil
	}
	background, uid := metav1.DeletePropagationBackground, launcher.GetUID()
	err = launchers.Delete(ctx, op.Name, metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return op.Wrap(err)
}
