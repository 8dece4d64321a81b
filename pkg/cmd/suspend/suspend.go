// Package suspend is `gangctl suspend` and `gangctl resume`.
package suspend

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/prompt"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Options are the dependencies, flags and arguments of the two commands.
type Options struct {
	IO        *iostreams.IOStreams
	Namespace func() (string, error)
	Client    func() (*kube.Client, error)

	// Prompter confirms the change of another user's job.
	Prompter prompt.Prompter

	Names []string
	// Yes changes jobs of others without a prompt.
	Yes bool
	// Suspend is false for resume.
	Suspend bool
}

// NewCommand returns `suspend`; runF replaces the run in tests.
func NewCommand(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	return newCommand(f, &Options{IO: f.IO, Namespace: f.Namespace, Client: f.Client, Prompter: prompt.New(f.IO), Suspend: true}, runF, &cobra.Command{
		Use:   "suspend NAME…",
		Short: "Set jobs aside: their members go, the jobs stay",
		Long: `Suspend jobs of any kind, whoever created them: their operator deletes their pods, which frees what they hold, and makes no new ones until
the jobs are resumed. What a member has not saved is lost. A job whose suspension is Kueue's to decide is refused, and so is
one that has finished. Every name is tried; the exit code is 1 if any failed.

A job keeps who submitted it with gangctl. Before another user's job is suspended, you have to confirm it, at a prompt or with --yes.`,
		Example: `  # free the GPUs of a job, to go on with it later
  gangctl suspend llama

  # two jobs
  gangctl suspend llama mistral`,
		SuggestFor: []string{"hold", "pause", "qhold"},
	})
}

// NewResumeCommand returns `resume`; runF replaces the run in tests.
func NewResumeCommand(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	return newCommand(f, &Options{IO: f.IO, Namespace: f.Namespace, Client: f.Client, Prompter: prompt.New(f.IO)}, runF, &cobra.Command{
		Use:   "resume NAME…",
		Short: "Go on with jobs that were set aside",
		Long: `Resume suspended jobs of any kind, whoever suspended them: their operator makes their pods again, and they are scheduled as a gang. A job
whose suspension is Kueue's to decide is refused, and so is one that has finished. Every name is tried; the exit code is 1 if
any failed.

A job keeps who submitted it with gangctl. Before another user's job is resumed, you have to confirm it, at a prompt or with --yes.`,
		Example: `  # go on with a job
  gangctl resume llama

  # and wait until all of it runs
  gangctl resume llama
  gangctl wait llama --for running`,
		SuggestFor: []string{"unsuspend", "release", "continue", "unpause", "qrls"},
	})
}

func newCommand(f *cmdutil.Factory, o *Options, runF func(context.Context, *Options) error, cmd *cobra.Command) *cobra.Command {
	cmd.Args = cmdutil.SeveralJobs
	cmd.ValidArgsFunction = cmdutil.CompleteJobs(f, 0, func(job *gang.Job) bool { return job.End == nil && job.Suspended != o.Suspend })
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		slices.Sort(args)
		o.Names = slices.Compact(args)
		if runF != nil {
			return runF(cmd.Context(), o)
		}
		return o.run(cmd.Context())
	}
	cmd.Flags().BoolVarP(&o.Yes, "yes", "y", false, strings.ToUpper(o.verb()[:1])+o.verb()[1:]+" jobs of other users without confirmation")
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	client, namespace, err := cmdutil.Connect(o.Client, o.Namespace)
	if err != nil {
		return err
	}
	var failures []error
	changed := 0
	who := &cmdutil.Caller{Client: client, Prompter: o.Prompter, Verb: o.verb(), Yes: o.Yes}
	for i, name := range o.Names {
		job, done, err := o.change(ctx, who, namespace, name)
		if failure.Interrupted(err) {
			failures = append(failures, cmdutil.Untried(err, o.Names[i:])...)
			break
		}
		if err != nil {
			failures = append(failures, err)
			continue
		}
		changed++
		fmt.Fprintf(o.IO.Out, "%s %s\n", job.Ref(), done)
	}
	return failure.AllBut(changed, failures...)
}
