package install

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	manifests "github.com/gangctl/gangctl/install/operator"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/prompt"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/setup/operator"
)

// allKinds is the name for every kind that the operator handles.
const allKinds = "all"

// OperatorOptions are the dependencies and flags of `install operator`.
type OperatorOptions struct {
	IO       *iostreams.IOStreams
	Client   func() (*kube.Client, error)
	Prompter prompt.Prompter

	Settings manifests.Operator
	// Typed reports whether a flag was typed: what was not stays as it is in an operator that gangctl installed.
	Typed func(flag string) bool
	// OfNew are the flags that were typed and are about a new operator only.
	OfNew []string
	// Release is that of an operator that is there, where its image does not have it.
	Release string
	Yes     bool
	Export  bool
	Flags   Flags
}

// NewOperatorCommand returns the command; runF replaces the run in tests.
func NewOperatorCommand(f *cmdutil.Factory, runF func(context.Context, *OperatorOptions) error) *cobra.Command {
	o := &OperatorOptions{IO: f.IO, Client: f.Client}
	var kinds []string
	cmd := &cobra.Command{
		Use:   "operator",
		Short: "Install the Kubeflow Training Operator, or let the one that is there make gangs",
		Long: `Install the Kubeflow Training Operator ` + manifests.Version + `, which turns TFJobs into pods: its release's own manifests, for TFJobs
only unless --kinds names more, with the rights that these need and no others. For TrainJobs of Kubeflow Trainer v2, and for JobSets,
LeaderWorkerSets and Ray jobs, gangctl has no manifests: --kinds trainjobs is refused with the command by which the project installs it.

Typed again, it adds kinds to the operator that gangctl installed, and takes none away: jobs live by it. Its image, --image-pull-secret
and --gang-scheduler stay unless they are typed; --gang-scheduler='' has it leave gangs alone again.

An operator that is there already is left alone, and that is the advice: 'gangctl submit' makes the gang of each job
itself. Where jobs are submitted by other means, too, --gang-scheduler has the operator make gangs, for every kind of
job that it handles and in all namespaces. What that takes of the release that runs is shown as a diff, and done on
consent: a flag of its Deployment, and the rights on groups that its own role lacks, as a role of its own. An upgrade
of the operator leaves that role, and may take the flag away again.`,
		Example: `  # the operator, for TFJobs
  gangctl install operator

  # for PyTorchJobs, too, as YAML
  gangctl install operator --kinds tfjobs,pytorchjobs --export

  # have the one that is there make gangs: what would change, and then do it
  gangctl install operator --gang-scheduler gang-scheduler --diff
  gangctl install operator --gang-scheduler gang-scheduler --yes`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Prompter == nil {
				o.Prompter = prompt.New(f.IO)
			}
			if err := o.complete(cmd, kinds); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&o.Settings.Namespace, "namespace", "n", manifests.DefaultNamespace, "Namespace of a new operator")
	flags.StringSliceVar(&kinds, "kinds", []string{manifests.Kinds()[0]}, "Kinds of job that a new operator handles: "+allKinds+", or some of "+strings.Join(manifests.Kinds(), ","))
	flags.StringVar(&o.Settings.Image, "image", "", "Full name of a new operator's image, instead of the release's")
	flags.StringSliceVar(&o.Settings.PullSecrets, "image-pull-secret", nil, "Secret in the namespace to pull the image with (repeatable)")
	flags.StringVar(&o.Settings.GangScheduler, "gang-scheduler", "", "Have the operator make the gang of every job, for this scheduler")
	flags.StringVar(&o.Release, "release", "", "Release of the operator that is there, such as 1.8, where its image does not name it")
	flags.BoolVarP(&o.Yes, "yes", "y", false, "Change an existing operator without confirmation")
	flagvalue.Enum(cmd, flags, &o.Flags.dryRun, "dry-run", dryRunNone, "Have the API server try it, and change nothing", dryRunNone, dryRunServer)
	flags.BoolVar(&o.Flags.diff, "diff", false, "Show what would change, and change nothing")
	flags.BoolVar(&o.Flags.force, "force-conflicts", false, "Take over fields that others own")
	flags.BoolVar(&o.Flags.wait, "wait", true, "Return when the operator is ready")
	flags.DurationVar(&o.Flags.timeout, "timeout", defaultTimeout, "How long --wait waits")
	flags.BoolVar(&o.Export, "export", false, "Print the objects of a new operator as YAML; needs no cluster")
	return cmd
}

// unknownKind refuses a kind of job that the training operator does not handle. Those of other projects are installed as these have it.
func unknownKind(name string) error {
	if r, known := kind.ByName(name); known && r.Controller.Install != "" {
		return failure.Usagef("--kinds %q: the training operator does not handle them, and gangctl has no manifests of %s", name, r.Controller.Name).
			WithHint("install it as its project has it: %s", r.Controller.Install)
	}
	return failure.Usagef("--kinds %q: must be %s, or some of %s", name, allKinds, strings.Join(manifests.Kinds(), ", "))
}

func (o *OperatorOptions) complete(cmd *cobra.Command, kinds []string) error {
	typed := cmd.Flags().Changed
	o.Typed = typed
	if slices.Contains(kinds, allKinds) {
		kinds = manifests.Kinds()
	}
	o.Settings.Kinds = nil
	for _, kind := range manifests.Kinds() { // in one order, whatever was typed
		if slices.Contains(kinds, kind) {
			o.Settings.Kinds = append(o.Settings.Kinds, kind)
		}
	}
	for _, kind := range kinds {
		if !slices.Contains(manifests.Kinds(), kind) {
			return unknownKind(kind)
		}
	}
	for _, flag := range []string{"namespace", "kinds", "image", "image-pull-secret"} {
		if typed(flag) {
			o.OfNew = append(o.OfNew, "--"+flag)
		}
	}
	if err := cmdutil.CheckImage("image", o.Settings.Image); err != nil {
		return err
	}
	switch {
	case len(o.Settings.Kinds) == 0:
		return failure.Usagef("--kinds: must name a kind of job")
	case o.Flags.diff && o.Flags.dryRun != dryRunNone:
		return failure.Usagef("--diff and --dry-run cannot be used together").WithHint("--diff changes nothing either")
	case typed("timeout") && !o.Flags.wait:
		return failure.Usagef("--timeout has no effect with --wait=false").WithHint("leave out one of the two flags")
	case o.Flags.timeout <= 0:
		return failure.Usagef("--timeout %s: must be greater than zero, such as %s", o.Flags.timeout, 2*time.Minute)
	}
	if o.Release != "" {
		if _, err := operator.ParseRelease(o.Release); err != nil {
			return failure.Usagef("--release: %w", err)
		}
	}
	if !o.Export {
		return nil
	}
	for _, flag := range []string{"dry-run", "diff", "wait", "timeout", "force-conflicts", "yes", "release"} {
		if typed(flag) {
			return failure.Usagef("--%s has no effect with --export, which contacts no cluster", flag).WithHint("leave out one of the two flags")
		}
	}
	return nil
}
