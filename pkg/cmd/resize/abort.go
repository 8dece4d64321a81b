package resize

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// abort takes back a change that an earlier run has begun: the group becomes what it was, and the job goes on and keeps nothing. It needs no plan,
// which a job that was changed by hand may have no more. Killed at any point, it is done by the next run: the job drops its change last.
func (o *Options) abort(ctx context.Context, t *target) error {
	op := jobs.Op(t.job, "abort resize of")
	change, err := o.Flags.Change(t.job)
	if err != nil {
		return err
	}
	switch {
	case !change.Empty():
		return failure.Usagef("--abort takes a change back, and makes none").WithHint("leave out the flags that change the job")
	case t.begun == nil:
		return failure.Errorf("%s: no change of it has begun", op)
	}
	if p, err := resize.New(t.gang, t.job.Object, t.group, t.begun.Change, t.begun); err == nil && p.Launcher && !p.Job.Changed() {
		return failure.Errorf("%s: the job is changed, and only its launcher is not", op).WithHint("complete it with: %s", again(t.job))
	}
	group, err := resize.Restored(t.gang, t.group, *t.begun)
	if err != nil {
		return failure.Errorf("%s: %w", op, err)
	}
	if err := o.confirmRestored(t, group); err != nil {
		return err
	}
	plan := &resize.Plan{Gang: t.gang, Intent: *t.begun, Job: resize.Object{Before: t.job.Object, After: t.job.Object}, Group: group, Original: group.After}
	a := newApplier(t.client, o.IO, t.job, plan, o.Timeout, o.Interval)
	return o.abortAs(ctx, a)
}

// abortAs takes back what a plan has begun.
func (o *Options) abortAs(ctx context.Context, a *applier) error {
	if _, err := a.takeBack(ctx, a.plan.Job.Before, a.timeout); err != nil {
		why := failure.From(err)
		return why.WithHint("%s", lines(why.Hint, "it is half taken back; go on with: "+again(a.job)+" --abort"))
	}
	if !a.plan.Intent.Resume {
		fmt.Fprintf(o.IO.ErrOut, "note: it stays suspended, as it was\n")
	}
	_, err := fmt.Fprintf(o.IO.Out, "%s: resize aborted\n", a.job.Ref())
	return err
}

// confirmRestored lets the user confirm what the group gets back: whoever may write the job may have written it.
func (o *Options) confirmRestored(t *target, group resize.Object) error {
	if !group.Changed() {
		return nil
	}
	diff, err := difference(group.Before, group.After)
	if err != nil {
		return err
	}
	text, err := json.Marshal(diff["spec"])
	if err != nil {
		return failure.Errorf("encode %s: %w", apply.Describe(group.Before), err)
	}
	return o.confirm(t, fmt.Sprintf("%s gets back what %s keeps:\n    %s", apply.Describe(group.Before), t.job, text), again(t.job)+" --abort")
}
