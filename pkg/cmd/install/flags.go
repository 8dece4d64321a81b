package install

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
)

// defaultTimeout is how long a Deployment may take to get ready: images are pulled meanwhile.
const defaultTimeout = 5 * time.Minute

// dryRun is the value of --dry-run.
type dryRun string

const (
	dryRunNone   dryRun = "none"
	dryRunServer dryRun = "server"
)

// Flags are those that install and upgrade share.
type Flags struct {
	namespace   string
	settings    Settings
	ha          bool
	cpu, memory *resource.Quantity

	dryRun  dryRun
	diff    bool
	force   bool
	wait    bool
	timeout time.Duration
}

// Add adds the flags.
func (f *Flags) Add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	// A flag of its own: the root's is about jobs, and has the context's namespace for a default.
	flags.StringVarP(&f.namespace, "namespace", "n", install.DefaultNamespace, "Namespace of the scheduler")
	flags.StringVar(&f.settings.Registry, "registry", defaultRegistry, "Registry and path that hold the image "+imageName+" of this version")
	flags.StringVar(&f.settings.Image, "image", "", "Full name of another image, with its registry and a tag or digest; goes without --registry")
	flags.StringSliceVar(&f.settings.PullSecrets, "image-pull-secret", nil, "Secret in the namespace to pull the image with (repeatable)")
	flags.BoolVar(&f.ha, "ha", false, "Two replicas, spread over nodes, of which one schedules, and a disruption budget")
	flagvalue.Count(flags, &f.settings.Replicas, "replicas", 1, 1, 9, "How many replicas there are, of which one schedules")
	flags.StringSliceVar(&f.settings.Serve, "serve", nil, "Further scheduler names to answer to, such as volcano,kube-batch, so that existing manifests run unchanged")
	flagvalue.CPUs(flags, &f.cpu, "cpu", "CPU that each replica requests, instead of 100m")
	flagvalue.Bytes(flags, &f.memory, "memory", "Memory that each replica requests, instead of 256Mi")
	flags.StringSliceVar(&f.settings.Tolerations, "toleration", nil, "Taint of nodes that its pods tolerate, besides that of control planes: KEY[=VALUE][:EFFECT], or all (repeatable)")
	flags.BoolVar(&f.settings.TakeBack, "take-back", true, "Let it suspend jobs and evict pods of gangs that are not whole or are preempted; without the rights it leaves them, and reports it")
	flags.StringSliceVar(&f.settings.MetricsFrom, "metrics-from", []string{monitoring}, "Namespace whose pods may reach its metrics (repeatable); empty for none")
	flagvalue.Enum(cmd, flags, &f.dryRun, "dry-run", dryRunNone, "Have the API server try it, and change nothing", dryRunNone, dryRunServer)
	flags.BoolVar(&f.diff, "diff", false, "Show field by field what would change, and change nothing")
	flags.BoolVar(&f.force, "force-conflicts", false, "Take over fields that others own")
	flags.BoolVar(&f.wait, "wait", true, "Return when the scheduler is ready")
	flags.DurationVar(&f.timeout, "timeout", defaultTimeout, "How long --wait waits")
}

// Complete takes what was typed: of the others, base has the values.
func (f *Flags) Complete(changed func(flag string) bool, base Settings) (Settings, error) {
	switch {
	case changed("registry") && changed("image"):
		return base, failure.Usagef("--registry and --image cannot be used together").WithHint("--image is the full name, with its registry")
	case changed("ha") && changed("replicas"):
		return base, failure.Usagef("--ha and --replicas cannot be used together").WithHint("--ha is --replicas %d", highAvailability)
	case f.diff && f.dryRun != dryRunNone:
		return base, failure.Usagef("--diff and --dry-run cannot be used together").WithHint("--diff changes nothing either")
	case changed("timeout") && !f.wait:
		return base, failure.Usagef("--timeout has no effect with --wait=false").WithHint("leave out one of the two flags")
	case f.timeout <= 0:
		return base, failure.Usagef("--timeout %s: must be greater than zero, such as 2m", f.timeout)
	}
	typed := f.settings
	for _, take := range []struct {
		flag string
		take func()
	}{
		{"registry", func() { base.Registry, base.Image = typed.Registry, "" }},
		{"image", func() { base.Image = typed.Image }},
		{"image-pull-secret", func() { base.PullSecrets = typed.PullSecrets }},
		{"replicas", func() { base.Replicas = typed.Replicas }},
		{"ha", func() { base.Replicas = replicas(f.ha) }},
		{"serve", func() { base.Serve = typed.Serve }},
		{"cpu", func() { base.CPU = f.cpu.String() }},
		{"memory", func() { base.Memory = f.memory.String() }},
		{"toleration", func() { base.Tolerations = typed.Tolerations }},
		{"metrics-from", func() { base.MetricsFrom = typed.MetricsFrom }},
		{"take-back", func() { base.TakeBack = typed.TakeBack }},
	} {
		if changed(take.flag) {
			take.take()
		}
	}
	return base, base.validate()
}

func replicas(ha bool) int32 {
	if ha {
		return highAvailability
	}
	return 1
}

// Namespace is the namespace as typed, or the default.
func (f *Flags) Namespace(flags *pflag.FlagSet) string {
	if flags.Changed("namespace") {
		return f.namespace
	}
	return install.DefaultNamespace
}

// Defaults are the settings of an install without flags.
func Defaults() Settings {
	return Settings{Registry: defaultRegistry, Replicas: 1, TakeBack: true, MetricsFrom: []string{monitoring}}
}
