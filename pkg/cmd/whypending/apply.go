package whypending

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	resizecmd "github.com/gangctl/gangctl/pkg/cmd/resize"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// maxApply is the largest number that --apply takes for an intention.
const maxApply = 1000

// apply does the action of a number, after it was shown and confirmed. What it does is what the answer shows: the command line.
func (o *Options) apply(ctx context.Context, a *answer.Answer) error {
	x, err := o.chosen(a)
	if err != nil {
		return err
	}
	text := x.Text
	if x.Cost != "" {
		text += " (" + x.Cost + ")"
	}
	fmt.Fprintf(o.IO.ErrOut, "%s\n[%d] %s\n    %s\n", a.Line(), x.Number, text, x.Resize)
	confirmation := cmdutil.Confirmation{Yes: o.Yes, Line: fmt.Sprintf("gangctl why-pending %s -n %s --apply %d", named(a), a.Job.Namespace, o.Apply),
		Stays: fmt.Sprintf("%s %s/%s stays as it is", a.Job.Kind, a.Job.Namespace, a.Job.Name)}
	if err := confirmation.Prompt(o.Prompter); err != nil {
		return err
	}
	return o.Resize(ctx, append([]string{named(a)}, resize.ArgsIn(x.Resize)[1:]...))
}

// chosen is the action of --apply, if gangctl can do it.
func (o *Options) chosen(a *answer.Answer) (*answer.Action, error) {
	subject := fmt.Sprintf("%s %s/%s", a.Job.Kind, a.Job.Namespace, a.Job.Name)
	i := slices.IndexFunc(a.Unblock, func(x answer.Action) bool { return x.Number == int(o.Apply) })
	if i < 0 {
		count := 0
		for _, x := range a.Unblock {
			count = max(count, x.Number)
		}
		return nil, failure.Errorf("--apply %d: the answer for %s offers %d", o.Apply, subject, count).
			WithHint("see them all: gangctl why-pending %s -n %s -v", named(a), a.Job.Namespace)
	}
	x := &a.Unblock[i]
	if resize.ArgsIn(x.Resize) != nil {
		return x, nil
	}
	how := x.How
	if x.Command != "" {
		how = "type what does it:\n" + strings.TrimSpace(x.Command)
	}
	return nil, failure.Errorf("--apply %d: gangctl cannot do that for %s: %s", o.Apply, subject, x.Text).WithHint("%s", how)
}

// named is the job of an answer as KIND/NAME: another kind may have a job of the name.
func named(a *answer.Answer) string {
	for _, r := range kind.Readers() {
		if r.Kind == a.Job.Kind {
			return r.Names[0] + "/" + a.Job.Name
		}
	}
	return a.Job.Name
}

// runResize runs `gangctl resize`.
func runResize(ctx context.Context, f *cmdutil.Factory, args []string) error {
	cmd := resizecmd.NewCommand(f, nil)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	return cmd.ExecuteContext(ctx)
}
