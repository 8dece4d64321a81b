package resize

import (
	"fmt"

	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// confirmBegun lets the user confirm a change that the job keeps and that the flags do not name: whoever may write the job may have written it,
// and what it has written of queues and classes may need more rights than that.
func (o *Options) confirmBegun(t *target, p *resize.Plan) error {
	if t.begun == nil || t.typed || o.DryRun != dryRunNone {
		return nil
	}
	text := fmt.Sprintf("%s keeps a change that has begun, after which %d members must start together:\n    %s", t.job, p.Intent.Min, shown(t.job, p.Intent.Change))
	return o.confirm(t, text, again(t.job))
}

// confirm prompts for what the annotation of a job has done with the rights of whoever runs this; line is the command, for hints.
func (o *Options) confirm(t *target, text, line string) error {
	fmt.Fprintln(o.IO.ErrOut, text)
	return cmdutil.Confirmation{Yes: o.Yes, Line: line, Stays: t.job.String() + " stays as it is"}.Prompt(o.Prompter)
}
