package submit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/prompt"
	"github.com/gangctl/gangctl/pkg/cluster/watch"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/submit/choose"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// Options are the dependencies, flags and arguments of `gangctl submit KIND`.
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
	// Template is the name or path of a job that the flags override; empty for the kind's own.
	Template string
	// Set are assignments PATH=VALUE to fields of the job.
	Set []string
	// Files are the paths of manifests that describe the job; the flags above then have no effect.
	Files []string

	kind kind
	// preset is the job of the template; nil without one.
	preset []byte
	// changed reports whether the user set a flag, rather than a default.
	changed func(flag string) bool
}

// commonHelp is the help that all kinds share.
const commonHelp = `

The arguments after -- are %s, exactly as typed: no shell reads them, and no $(NAME) is replaced.
With --shell, sh -c reads them: --shell -- 'python train.py && touch /done'.

--dry-run=fit reports whether the gang would start now, and if not, why, with the answer and the exit code of why-pending, but
0 where it would.

CPU and memory become requests and equal limits. A failed member is restarted in place (--restart-policy OnFailure).`

// newKindCommand returns the command of a kind; runF replaces the run in tests.
func newKindCommand(f *cmdutil.Factory, k kind, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Submission: Submission{IO: f.IO, Namespace: f.Namespace, Client: f.Client}, Suffix: f.Suffix, ConfigPath: f.ConfigPath, kind: k, Roles: k.roles()}
	whose := "the command of every member"
	if k.name == "mpi" {
		whose = "taken"
	}
	cmd := &cobra.Command{
		Use:   k.name + " [NAME] [flags] [-- COMMAND [ARGUMENT…]]",
		Short: k.short, Long: k.long + fmt.Sprintf(commonHelp, whose), Example: k.example,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.CommandLine = commandLine(f.Args, cmd.Flags(), cmd.InheritedFlags())
			if cmd.Flags().Changed("filename") {
				file := &FileOptions{Submission: o.Submission, gangFlags: o.gangFlags, Files: o.Files, Suffix: o.Suffix, CommandLine: o.CommandLine, Kind: k.reader.GroupKind}
				return file.submit(cmd, args)
			}
			if runF != nil {
				if err := o.parse(cmd, args); err != nil {
					return err
				}
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context(), func(ctx context.Context) (*batch, error) {
				if p := prompt.New(f.IO); o.needsWizard(cmd, p) {
					return o.wizard(ctx, cmd, args, p, f.Args)
				}
				if err := o.parse(cmd, args); err != nil {
					return nil, err
				}
				return o.batch()
			})
		},
	}
	o.addFlags(cmd)
	return cmd
}

// parse reads NAME and the command after --, completes the flags, and refuses what cannot work.
func (o *Options) parse(cmd *cobra.Command, args []string) error {
	if err := o.complete(cmd, args); err != nil {
		return err
	}
	return o.validate(cmd.Flags())
}

// batch is the one job that the flags describe.
func (o *Options) batch() (*batch, error) {
	namespace, err := o.Namespace()
	if err != nil {
		return nil, err
	}
	b := &batch{jobs: []*desiredJob{o.job(namespace)}, namespace: namespace}
	return b, b.check()
}

// job is the job that the flags describe.
func (o *Options) job(namespace string) *desiredJob {
	return &desiredJob{
		namespace: namespace, kind: o.kind.reader, request: o.request(),
		objects: func(d choose.Decision, _ func(string) bool) (*render.Objects, []string, error) {
			objects, err := o.objects(namespace, d)
			return objects, nil, err
		},
	}
}

func (o *Options) request() choose.Request {
	r := o.gangFlags.request(o.kind.reader.GroupKind)
	r.Preferred = o.preferredDomains()
	return r
}

// complete reads NAME and the command after --, and fills in the defaults that depend on other flags.
func (o *Options) complete(cmd *cobra.Command, args []string) error {
	o.changed = cmd.Flags().Changed
	if err := refuseEmpty(cmd.Flags()); err != nil {
		return err
	}
	if err := refuseBytes(cmd.Flags(), args); err != nil {
		return err
	}
	positional := args
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		positional, o.Command = args[:dash], args[dash:]
	}
	hint := "the command of the job goes after --: gangctl submit " + o.kind.name + " NAME [flags] -- COMMAND"
	if len(positional) > 1 {
		return failure.Usagef("unexpected argument %q after NAME %q", positional[1], positional[0]).WithHint("%s", hint)
	}
	if len(positional) == 1 {
		name := positional[0]
		switch {
		case o.Name != "" && cmd.Flags().Changed("name"):
			return failure.Usagef("the name is given twice: %q and --name %q", name, o.Name).WithHint("leave out one of them")
		case o.waitsFor(name):
			return errWaitValue(name)
		}
		o.Name = name
	}
	if o.Name == "" {
		o.Name = o.kind.name + "-" + o.Suffix()
	}
	if err := o.applyTemplate(); err != nil {
		return err
	}
	for _, r := range o.Roles {
		r.Image = cmp.Or(r.Image, o.Image)
		r.CPU, r.Memory, r.Storage = cmp.Or(r.CPU, o.All.CPU), cmp.Or(r.Memory, o.All.Memory), cmp.Or(r.Storage, o.All.Storage)
		if r.GPUs == unset {
			r.GPUs = 0
			if r.trains {
				r.GPUs = o.All.GPUs
			}
		}
	}
	if o.kind.name == "mpi" && o.SlotsPerWorker == 0 {
		o.SlotsPerWorker = max(1, int32(o.Roles[1].GPUs)) //nolint:gosec // its flag has a range
	}
	if o.MinAvailable == 0 {
		o.MinAvailable = o.members()
	}
	return nil
}

func (o *Options) members() int32 {
	var n int32
	for _, r := range o.Roles {
		n += r.Replicas
	}
	return n
}

// waitsFor reports whether a NAME is rather what --wait is to wait for: pflag gives a flag with an optional value nothing but what follows "=".
func (o *Submission) waitsFor(name string) bool {
	return o.Wait != "" && slices.Contains([]watch.Target{watch.Scheduled, watch.Running, watch.Done}, watch.Target(name))
}

func errWaitValue(name string) error {
	return failure.Usagef("--wait %s: the value goes after an equals sign", name).WithHint("--wait=%s", name)
}
