// Package scheduler is the bundled gang scheduler: the PodGroup cycle of
// kube-scheduler, fed with the gangs of every dialect that gangctl reads.
package scheduler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/features"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/gangcache"
)

const (
	// DefaultName is the schedulerName that the scheduler answers to unless its
	// configuration sets another, and the name of its lease.
	DefaultName = "gang-scheduler"
	// DefaultNamespace is where its lease lives.
	DefaultNamespace = "gangctl-system"
)

// NewCommand returns `gangctl scheduler`. Its flags and its configuration file
// are those of kube-scheduler.
func NewCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "scheduler",
		Short: "Run the gang scheduler (what its image runs)",
		Long: `Run the gang scheduler: kube-scheduler's PodGroup cycle, fed with the gangs of
every dialect that gangctl reads. Flags and configuration file are those of
kube-scheduler, --serve and --group-priority; by default it serves schedulerName
` + DefaultName + ` and takes its lease in namespace ` + DefaultNamespace + `.

With --serve it answers to the names of other schedulers, too, so that manifests
that were written for them run unchanged. Whoever had the name must be stopped:
two schedulers of one name bind the same pods.`,
		Example: `  gangctl scheduler --serve volcano,kube-batch,scheduler-plugins-scheduler,koord-scheduler,kai-scheduler`,
		Hidden:  true,
		// Its flags are many and some have effects on the process; they are
		// made only when the command really runs.
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := parse(cmd, args)
			if opts == nil || err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return run(ctx, opts)
		},
	}
}

// settings are kube-scheduler's options and our own.
type settings struct {
	*options.Options
	serve    []string           // scheduler names beyond those of the configuration
	priority gangcache.Priority // what the priority of a gang is taken from
}

// parse reads the flags; nil settings mean that help was requested and printed.
func parse(cmd *cobra.Command, args []string) (*settings, error) {
	gate := utilfeature.DefaultMutableFeatureGate
	if err := SetDefaultGates(gate); err != nil {
		return nil, err
	}
	opts := &settings{Options: options.NewOptions(), priority: gangcache.MemberPriority}
	flags := opts.flags(cmd)
	if err := flags.Parse(args); errors.Is(err, pflag.ErrHelp) {
		return nil, nil
	} else if err != nil {
		return nil, usage(cmd, "%w", err)
	}
	if rest := flags.Args(); len(rest) > 0 {
		return nil, usage(cmd, "%s takes no arguments, got %q", cmd.CommandPath(), rest)
	}
	if opts.priority != gangcache.MemberPriority && opts.priority != gangcache.ObjectPriority {
		return nil, usage(cmd, "--group-priority: %q is neither %s nor %s", opts.priority, gangcache.MemberPriority, gangcache.ObjectPriority)
	}
	if _, err := addProfiles(nil, opts.serve); err != nil {
		return nil, usage(cmd, "%w", err)
	}
	if err := opts.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, usage(cmd, "--feature-gates: %w", err)
	}
	if !gate.Enabled(features.GenericWorkload) {
		return nil, usage(cmd, "--feature-gates: %s=false would switch gang scheduling off", features.GenericWorkload)
	}
	if err := logsapi.ValidateAndApply(opts.Logs, gate); err != nil {
		return nil, usage(cmd, "%w", err)
	}
	return opts, nil
}

// SetDefaultGates sets the defaults that differ from those of kube-scheduler. Whoever sets gates otherwise does so before.
func SetDefaultGates(gate featuregate.MutableFeatureGate) error {
	// The engine's gangs are behind a gate that is off by default upstream. It
	// needs nothing of the API server: the groups never leave this process.
	if !gate.Enabled(features.GenericWorkload) {
		if err := gate.OverrideDefault(features.GenericWorkload, true); err != nil {
			return fmt.Errorf("enable gang scheduling: %w", err)
		}
	}
	// A member whose siblings are still to be decided on would be nominated for
	// its node, one more write for each, milliseconds before it is bound there.
	if gate.Enabled(features.NominatedNodeNameForExpectation) {
		if err := gate.OverrideDefault(features.NominatedNodeNameForExpectation, false); err != nil {
			return fmt.Errorf("spare nominations: %w", err)
		}
	}
	// Whether pods may have tolerations that compare values is for the API server
	// to decide: it refuses those that it does not know.
	if !gate.Enabled(features.TaintTolerationComparisonOperators) {
		if err := gate.OverrideDefault(features.TaintTolerationComparisonOperators, placement.Comparing); err != nil {
			return fmt.Errorf("compare tolerations: %w", err)
		}
	}
	return nil
}

// flags are kube-scheduler's and our own, in a set apart from the command's: gangctl has flags for every command, some of which
// have the name of one of kube-scheduler's.
func (s *settings) flags(cmd *cobra.Command) *pflag.FlagSet {
	own := s.Flags.FlagSet("gangs")
	own.StringSliceVar(&s.serve, "serve", nil,
		"further scheduler names to answer to, such as volcano or kube-batch; each gets the plugins of the first profile")
	own.StringVar((*string)(&s.priority), "group-priority", string(s.priority),
		"what the priority of a gang is taken from: members, or object for the PriorityClass that its group object names, which no quota or admission of pods checks")
	flags := pflag.NewFlagSet(cmd.CommandPath(), pflag.ContinueOnError)
	flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	for _, section := range s.Flags.Order {
		flags.AddFlagSet(s.Flags.FlagSets[section])
	}
	flags.Usage = func() {
		fmt.Fprintf(cmd.OutOrStdout(), "%s\n\nUsage:\n  %s [flags]\n", cmd.Long, cmd.CommandPath())
		cliflag.PrintSections(cmd.OutOrStdout(), *s.Flags, 0)
	}
	return flags
}

func usage(cmd *cobra.Command, format string, args ...any) error {
	return failure.Usagef(format, args...).WithHint("see '%s --help'", cmd.CommandPath())
}

// run schedules until ctx ends or the lease is lost.
func run(ctx context.Context, opts *settings) error {
	client, err := discoveryOf(ctx, opts.Options)
	if err != nil {
		return err
	}
	if err := enableComposite(ctx, utilfeature.DefaultMutableFeatureGate, engine.DiscoveryServed(client)); ctx.Err() != nil {
		return nil // it was stopped
	} else if err != nil {
		return err
	}
	s, err := setup(ctx, opts)
	if err != nil {
		return err
	}
	if err := s.run(ctx); ctx.Err() == nil {
		return err
	}
	return nil // it was stopped
}
