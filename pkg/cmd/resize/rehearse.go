package resize

import (
	"context"
	"fmt"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/text"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// rehearseFit answers whether the gang would start now, as changed.
func (o *Options) rehearseFit(ctx context.Context, t *target, p *resize.Plan) error {
	a, err := fit(ctx, t, p, diagnose.Options{})
	if err != nil {
		return err
	}
	if a.Verdict == answer.FitsNow {
		a.Exit = answer.ExitOK
	}
	if staysSuspended(t, p) {
		a.Notes = append([]string{fmt.Sprintf("%s is suspended: this is how it would be if it were resumed", t.job.Meta.Name)}, a.Notes...)
	}
	if err := cmdutil.PrintAnswer(o.IO, &o.Output, a, text.Options{}); err != nil {
		return err
	}
	return cmdutil.ExitError(a.Exit)
}

// staysSuspended reports whether the job was suspended by a user, and is to stay so.
func staysSuspended(t *target, p *resize.Plan) bool {
	_, queued := kueue.QueueOf(&t.job.Meta) // which is suspended while it waits
	return t.job.Suspended && !p.Intent.Resume && !queued
}

// requireFit refuses a change after which the gang would not start now. Where that cannot be known it is noted, and so it is of a job that is to
// stay suspended, which starts nothing yet. A change that has begun is completed in any case: the job is of no use until then.
func (o *Options) requireFit(ctx context.Context, t *target, p *resize.Plan) error {
	_, queued := kueue.QueueOf(&t.job.Meta)
	stays := staysSuspended(t, p)
	if o.AnyFit || t.begun != nil || !p.Intent.Resume && !queued && !stays {
		return nil
	}
	a, err := fit(ctx, t, p, diagnose.Options{NoAdvice: true, Nodes: diagnose.NoNodes})
	if err != nil {
		return err
	}
	switch {
	case a.Verdict.Starts():
		return nil
	case a.Verdict == answer.Uncertain:
		fmt.Fprintf(o.IO.ErrOut, "note: it is not known whether it would start now: %s\n", a.Headline)
		return nil
	case stays:
		fmt.Fprintf(o.IO.ErrOut, "note: it is suspended; resumed now, it would not start: %s\n", a.Line())
		return nil
	}
	return failure.Errorf("%s: nothing is changed, as it would not start now: %s", jobs.Op(t.job, "resize"), a.Line()).
		WithHint("see why, and what would help, with --dry-run=fit; to change it all the same, add --no-fit")
}

// fit answers whether the gang would start now if the job were submitted again as changed, its own pods gone, and not suspended.
func fit(ctx context.Context, t *target, p *resize.Plan, options diagnose.Options) (*answer.Answer, error) {
	changed := whatif.Resubmit(t.snapshot, t.gang, p.Edit())
	if changed == nil {
		return nil, failure.Errorf("%s: the job is not in what was read of the cluster", jobs.Op(t.job, "resize"))
	}
	if p.Intent.Resume || staysSuspended(t, p) {
		changed = whatif.Resumed(changed, t.job)
	}
	explainer := diagnose.NewExplainer(t.snapshot).Assume(changed)
	a, err := explainer.Explain(ctx, diagnose.Query{Kind: t.job.Reader.Names[0], Namespace: t.job.Meta.Namespace, Name: t.job.Meta.Name}, options)
	if err != nil {
		return nil, cmdutil.ExplainName(err, "")
	}
	return a, nil
}
