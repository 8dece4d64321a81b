package whypending

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	resizecmd "github.com/gangctl/gangctl/pkg/cmd/resize"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// maxApply is the largest number that --apply takes for an intention.
const maxApply = 1000

// way is one of the ways that an answer offers: its number there, or its text. The same number is another way as soon as the cluster has
// changed; the same text is not.
type way struct {
	number int
	text   string
}

func (w *way) given() bool { return w.number > 0 || w.text != "" }

// String implements pflag.Value.
func (w *way) String() string {
	if w.number > 0 {
		return strconv.Itoa(w.number)
	}
	return w.text
}

// Type implements pflag.Value.
func (w *way) Type() string { return "way" }

// Set implements pflag.Value.
func (w *way) Set(s string) error {
	n, err := strconv.Atoi(s)
	switch {
	case err == nil && (n < 1 || n > maxApply):
		return fmt.Errorf("must be a whole number from 1 to %d, or the text of a way", maxApply)
	case err == nil:
		*w = way{number: n}
	case strings.TrimSpace(s) == "":
		return errors.New("must not be empty")
	default:
		*w = way{text: s}
	}
	return nil
}

// is reports whether an action is the one that was typed.
func (w *way) is(x answer.Action) bool {
	return x.Number > 0 && (x.Number == w.number || x.Text == w.text || x.Resize == w.text && x.Resize != "")
}

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
	fmt.Fprintf(o.IO.ErrOut, "%s\n[%d] %s\n    %s\n", a.Line(), x.Number, text, o.IO.Commands(x.Resize))
	confirmation := cmdutil.Confirmation{Yes: o.Yes, Line: fmt.Sprintf("gangctl why-pending %s -n %s --apply %s", o.named(a), a.Job.Namespace, shell.Quote(x.Text)),
		Stays: fmt.Sprintf("%s %s/%s stays as it is", a.Job.Kind, a.Job.Namespace, a.Job.Name)}
	if err := confirmation.Prompt(o.Prompter); err != nil {
		return err
	}
	return o.Resize(ctx, append([]string{o.named(a)}, resize.ArgsIn(x.Resize)[1:]...))
}

// chosen is the action of --apply, if gangctl can do it.
func (o *Options) chosen(a *answer.Answer) (*answer.Action, error) {
	subject := fmt.Sprintf("%s %s/%s", a.Job.Kind, a.Job.Namespace, a.Job.Name)
	i := slices.IndexFunc(a.Unblock, func(x answer.Action) bool {
		printed := x
		printed.Resize = o.IO.Commands(x.Resize)
		return o.Apply.is(x) || o.Apply.is(printed)
	})
	if i < 0 && o.Apply.text != "" {
		return nil, failure.Errorf("--apply: the answer for %s offers no way %q (any more); it offers %s", subject, o.Apply.text, offered(a)).
			WithHint("see them all: gangctl why-pending %s -n %s -v", o.named(a), a.Job.Namespace)
	}
	if i < 0 {
		count := 0
		for _, x := range a.Unblock {
			count = max(count, x.Number)
		}
		return nil, failure.Errorf("--apply %s: the answer for %s offers %d", &o.Apply, subject, count).
			WithHint("see them all: gangctl why-pending %s -n %s -v", o.named(a), a.Job.Namespace)
	}
	x := &a.Unblock[i]
	if resize.ArgsIn(x.Resize) != nil {
		return x, nil
	}
	how := x.How
	if x.Command != "" {
		how = "type what does it:\n" + strings.TrimSpace(x.Command)
	}
	return nil, failure.Errorf("--apply %s: gangctl cannot do that for %s: %s", &o.Apply, subject, x.Text).WithHint("%s", how)
}

// offered are the ways that an answer offers.
func offered(a *answer.Answer) string {
	var all []string
	for _, x := range a.Unblock {
		if x.Number > 0 {
			all = append(all, fmt.Sprintf("[%d] %s", x.Number, x.Text))
		}
	}
	return cmp.Or(strings.Join(all, ", "), "none")
}

// named is the job of an answer as KIND/NAME: another kind may have a job of the name.
func (o *Options) named(a *answer.Answer) string {
	if typed, ok := kind.ByName(o.Kind); ok && typed.Kind == a.Job.Kind {
		return typed.Argument(a.Job.Name)
	}
	of := slices.DeleteFunc(kind.Readers(), func(r gang.JobReader) bool { return r.Kind != a.Job.Kind })
	if len(of) != 1 {
		return a.Job.Name
	}
	return of[0].Argument(a.Job.Name)
}

// runResize runs `gangctl resize`.
func runResize(ctx context.Context, f *cmdutil.Factory, args []string) error {
	cmd := resizecmd.NewCommand(f, nil)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	return cmd.ExecuteContext(ctx)
}
