package submit

import (
	"context"
	"fmt"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/prompt"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// Options are what `gangctl submit KIND` works with.
type Options struct {
	Submission
	gangFlags
	podFlags
	Suffix     func() string
	ConfigPath string
	// CommandLine is what the job keeps of the command line.
	CommandLine string

	Name  string
	Image string
	// Roles are those of the kind, in the order in which members are shown.
	Roles          []*role
	All            resources
	GPUResource    string
	Env            []string
	WorkingDir     string
	PriorityClass  string
	RestartPolicy  kubeflowv1.RestartPolicy
	CleanPodPolicy kubeflowv1.CleanPodPolicy
	Labels         []string
	Annotations    []string
	Command        []string
	// SlotsPerWorker, ProcessesPerNode and Framework are of some kinds only.
	SlotsPerWorker   int32
	ProcessesPerNode string
	Framework        render.Framework
	// Template is the name or path of a job that the flags are laid over; empty for the kind's own.
	Template string
	// Set are assignments PATH=VALUE to fields of the job.
	Set []string
	// File is the path of a manifest that says what the job is; the flags above then say nothing.
	File string

	kind kind
	// preset is the job of the template; nil without one.
	preset []byte
	// typed tells a flag that was typed from a default.
	typed func(flag string) bool
}

// everyKind is the help that all kinds share.
const everyKind = `

The words after -- are %s, exactly as typed: no shell reads them, and no $(NAME) is replaced.
With --shell, sh -c reads them: --shell -- 'python train.py && touch /done'.

--dry-run=fit says whether the gang would start now, and if not, why, with the answer and the exit code of why-pending, but
0 where it would.

CPU and memory become requests and equal limits. A failed member is restarted in place (--restart-policy OnFailure).`

// newKindCommand returns the command of a kind; runF replaces the run in tests.
func newKindCommand(f *cmdutil.Factory, k kind, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Submission: Submission{IO: f.IO}, Suffix: f.Suffix, ConfigPath: f.ConfigPath, kind: k, Roles: k.roles()}
	whose := "the command of every member"
	if k.word == "mpi" {
		whose = "taken"
	}
	cmd := &cobra.Command{
		Use:   k.word + " [NAME] [flags] [-- COMMAND [ARGUMENT…]]",
		Short: k.short, Long: k.long + fmt.Sprintf(everyKind, whose), Example: k.example,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Namespace, o.Client = f.Namespace, f.Client
			o.CommandLine = commandLine(f.Args, cmd.Flags(), cmd.InheritedFlags())
			if cmd.Flags().Changed("filename") {
				file := &FileOptions{Submission: o.Submission, gangFlags: o.gangFlags, File: o.File, Suffix: o.Suffix, CommandLine: o.CommandLine, Kind: k.reader.GroupKind}
				return file.submit(cmd, args)
			}
			var w *wizard
			if p := prompt.New(f.IO); o.wantsWizard(cmd, p) {
				var err error
				if args, w, err = o.wizard(cmd, args, p, f.Args); err != nil {
					return err
				}
			}
			if err := o.complete(cmd, args); err != nil {
				return err
			}
			if err := o.validate(cmd.Flags()); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			if w != nil {
				return o.runAsked(cmd.Context(), w)
			}
			return o.run(cmd.Context())
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	namespace, err := o.Namespace()
	if err != nil {
		return err
	}
	return o.Submission.run(ctx, o.plan(namespace))
}

func (o *Options) plan(namespace string) plan {
	return plan{
		namespace: namespace, reader: o.kind.reader, gang: o.gangFlags,
		make: func(d decision) (*render.Objects, error) { return o.render(namespace, d) },
	}
}
