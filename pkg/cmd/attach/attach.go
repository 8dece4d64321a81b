// Package attach is `gangctl attach`.
package attach

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/exec"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// shell is the command where none is given: the best shell that there is.
var shell = []string{"sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash || exec sh"}

// Options are the dependencies, flags and arguments of the command.
type Options struct {
	IO        *iostreams.IOStreams
	Namespace func() (string, error)
	Client    func() (*kube.Client, error)

	Name      string
	Member    cmdutil.MemberFlags
	Container string
	Stdin     bool
	Command   []string
}

// NewCommand returns the command; runF replaces the run in tests.
func NewCommand(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{IO: f.IO, Namespace: f.Namespace, Client: f.Client}
	cmd := &cobra.Command{
		Use:   "attach NAME [-- COMMAND…]",
		Short: "Run a shell or a command in a member of a job",
		Long: `Run a command in a member of a job, or a shell without one: in the member that leads the job, unless --role and --index name
another, or pod/NAME, or the name of a member's pod, stands in place of the job. On a terminal it is interactive; elsewhere standard input is passed on with -i only.

The exit code is that of the command.`,
		Example: `  # a shell in the first worker, or the chief
  gangctl attach llama

  # what does the third worker's GPU do?
  gangctl attach llama --role worker --index 2 -- nvidia-smi`,
		SuggestFor: []string{"exec", "shell", "ssh", "sattach"},
		Args: func(cmd *cobra.Command, args []string) error {
			names := args
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				names = args[:at]
			}
			if len(names) != 1 {
				return failure.Usagef("attach needs the name of one job, got %d", len(names)).WithHint("a command comes after --: gangctl attach NAME -- nvidia-smi")
			}
			return nil
		},
		ValidArgsFunction: cmdutil.CompleteMembers(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name, o.Command = args[0], args[1:]
			if cmd.ArgsLenAtDash() >= 0 && len(o.Command) == 0 {
				return failure.Usagef("there is no command after --").WithHint("leave out -- for a shell")
			}
			if err := o.Member.Validate(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		},
	}
	o.Member.AddFlags(cmd)
	cmd.Flags().StringVarP(&o.Container, "container", "c", "", "Container; default is the one that does the work")
	cmd.Flags().BoolVarP(&o.Stdin, "stdin", "i", false, "Pass standard input on, also where it is no terminal")
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	client, namespace, err := cmdutil.Connect(o.Client, o.Namespace)
	if err != nil {
		return err
	}
	member, err := o.Member.Running(ctx, client, namespace, o.Name)
	if err != nil {
		return err
	}
	container, err := cmdutil.Container(member, o.Container, member.Pod.Spec.Containers)
	if err != nil {
		return err
	}
	pod := member.Pod
	command := o.Command
	if len(command) == 0 {
		if !o.IO.IsTerminal() && !o.Stdin {
			return failure.Usagef("a shell needs a terminal").WithHint("name a command: gangctl attach %s -- nvidia-smi", o.Name)
		}
		command = shell
	}
	err = o.execute(ctx, client, pod, container, command)
	var exit exec.CodeExitError
	switch {
	case errors.As(err, &exit):
		return &failure.Error{Code: failure.Code(exit.Code)} // the command itself has reported it
	case ctx.Err() != nil:
		return failure.WithCode(failure.CodeInterrupted, "interrupted")
	}
	return failure.Op{Verb: "create", Resource: corev1.SchemeGroupVersion.WithResource("pods/exec"), Kind: "exec in pod", Namespace: namespace, Name: pod.Name}.Wrap(cmdutil.StreamError(err))
}
