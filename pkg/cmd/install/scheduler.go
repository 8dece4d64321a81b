package install

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/version"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	checkcmd "github.com/gangctl/gangctl/pkg/cmd/check"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/setup/check"
	"github.com/gangctl/gangctl/pkg/setup/check/facts"
)

// SchedulerOptions are the dependencies and flags of `install scheduler`.
type SchedulerOptions struct {
	IO      *iostreams.IOStreams
	Client  func() (*kube.Client, error)
	Version version.Info

	Namespace string
	// Settings are those of a new scheduler.
	Settings Settings
	Flags    Flags
	// Typed reports whether a flag was typed: what was not stays as it is in a scheduler that is installed.
	Typed  func(flag string) bool
	Export bool
	// SkipChecks installs whatever `check --pre` reports.
	SkipChecks bool
}

// NewSchedulerCommand returns the command; runF replaces the run in tests.
func NewSchedulerCommand(f *cmdutil.Factory, runF func(context.Context, *SchedulerOptions) error) *cobra.Command {
	o := &SchedulerOptions{IO: f.IO, Client: f.Client, Version: f.Version}
	cmd := &cobra.Command{
		Use:   "scheduler",
		Short: "Install the gang scheduler",
		Long: `Install the gang scheduler alongside the cluster's own: a Deployment of 'gangctl scheduler' under the strictest pod
security, exactly the rights that it uses, and roles that let users of view, edit and admin work with gangs.
Pods are scheduled by it whose schedulerName is gang-scheduler.

First it looks at what 'gangctl check --pre' looks at, and changes nothing if a check fails: all rights that are
missing are named at once, with the YAML that grants them.

Each object is a line: created, configured, unchanged or pruned. To run it again with the same flags changes
nothing; what is installed already stays as it is, except for flags that are given again. Names of --serve are added to those
that are served: 'gangctl upgrade --serve' takes some away. What gangctl did not make stays its owner's: a namespace or a PodGroup definition that is there already is used
and not touched, and any other object in the place of one of ours is a reason to install nothing.`,
		Example: `  # one replica, and wait until it is ready
  gangctl install scheduler

  # two replicas, from your own registry, and what would change
  gangctl install scheduler --ha --registry registry.example.com/ml --diff

  # as YAML, for a repository or another tool
  gangctl install scheduler --export > gang-scheduler.yaml`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(cmd); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		},
	}
	o.Flags.Add(cmd)
	cmd.Flags().BoolVar(&o.Export, "export", false, "Print the objects as YAML; needs no cluster")
	cmd.Flags().BoolVar(&o.SkipChecks, "skip-checks", false, "Install whatever the checks report")
	return cmd
}

func (o *SchedulerOptions) complete(cmd *cobra.Command) error {
	var err error
	o.Typed = cmd.Flags().Changed
	if o.Settings, err = o.Flags.Complete(o.Typed, Defaults()); err != nil {
		return err
	}
	o.Namespace = o.Flags.Namespace(cmd.Flags())
	if !o.Export {
		return nil
	}
	for _, flag := range []string{"dry-run", "diff", "wait", "timeout", "force-conflicts", "skip-checks"} {
		if cmd.Flags().Changed(flag) {
			return failure.Usagef("--%s has no effect with --export, which contacts no cluster", flag).WithHint("leave out one of the two flags")
		}
	}
	return nil
}

func (o *SchedulerOptions) run(ctx context.Context) error {
	scheduler, unset := o.Settings.Scheduler(o.Namespace, o.Version.Version)
	if o.Export {
		if unset != nil {
			return unset
		}
		return export(o.IO, scheduler)
	}
	client, err := o.Client()
	if err != nil {
		return err
	}
	found, err := Find(ctx, client)
	if err != nil {
		if !apierrors.IsForbidden(err) || o.SkipChecks || unset != nil {
			return err
		}
		objects, noObjects := scheduler.Objects() // all that is missing, at once
		return cmp.Or(noObjects, o.precheck(ctx, client, objects), err)
	}
	if found.Namespace != "" { // its settings are kept, its image among them
		scheduler, unset = o.merged(found)
	}
	if unset != nil {
		return unset
	}
	i := &Installer{IO: o.IO, Client: client, Flags: &o.Flags}
	if !o.SkipChecks {
		i.Before = func(ctx context.Context, objects []*unstructured.Unstructured) error {
			return o.precheck(ctx, client, objects)
		}
	}
	return i.Apply(ctx, scheduler, found)
}

// merged is the scheduler that is installed with what was typed. Pods may name any scheduler that is served: such names are only added.
func (o *SchedulerOptions) merged(found *Installation) (install.Scheduler, error) {
	settings, err := o.Flags.Complete(o.Typed, found.Settings)
	if err != nil {
		return install.Scheduler{}, err
	}
	settings.Serve = slices.Clone(found.Settings.Serve)
	for _, name := range o.Settings.Serve {
		if !slices.Contains(settings.Serve, name) {
			settings.Serve = append(settings.Serve, name)
		}
	}
	if err := found.KnowsImage(settings, o.Typed, o.Version.Version); err != nil {
		return install.Scheduler{}, err.WithHint("name it: gangctl install scheduler --image IMAGE")
	}
	if stay := differing(settings, o.Settings); len(stay) > 0 {
		fmt.Fprintf(o.IO.ErrOut, "note: the scheduler is installed already, and keeps what is not typed: %s\n", strings.Join(stay, " "))
	}
	return settings.Scheduler(o.Namespace, o.Version.Version)
}

// precheck looks at what has to be true before these objects are written, and refuses if something is not: half an installation
// is worse than none. What it may not look at is no reason to refuse.
func (o *SchedulerOptions) precheck(ctx context.Context, client *kube.Client, objects []*unstructured.Unstructured) error {
	collected, err := facts.Collect(ctx, client, facts.Options{Namespace: o.Namespace, Version: o.Version, Shipped: objects, Before: true, Now: o.IO.Clock.Now})
	if err != nil {
		return fmt.Errorf("check the cluster: %w", err)
	}
	all := check.NewReport(check.Before(), collected)
	if all.Summary.Fail == 0 {
		return nil
	}
	failed := &check.Report{Summary: all.Summary}
	for _, outcome := range all.Checks {
		if outcome.Status == check.Fail {
			failed.Checks = append(failed.Checks, outcome)
		}
	}
	fmt.Fprint(o.IO.ErrOut, checkcmd.Text(failed, o.IO, o.IO.ErrStyled))
	return failure.Errorf("the gang scheduler is not installed: %d of %d checks failed", all.Summary.Fail, len(all.Checks)).
		WithHint("see all of them: gangctl check --pre; install it all the same: --skip-checks")
}
