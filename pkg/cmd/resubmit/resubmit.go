// Package resubmit is `gangctl resubmit`: it submits a job again.
package resubmit

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/submit"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/summary"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
	"github.com/gangctl/gangctl/pkg/submit/redact"
)

// Options are the dependencies, flags and arguments of the command.
type Options struct {
	cmdutil.JobOptions

	NewName string
	Set     []string

	// passed are the flags that go to submit as they are.
	passed []string
	f      *cmdutil.Factory
	fresh  func(*cmdutil.Factory) *cobra.Command
}

// NewCommand returns the command. fresh makes a new tree of all commands, in which submit is run; runF replaces the run in tests.
func NewCommand(f *cmdutil.Factory, fresh func(*cmdutil.Factory) *cobra.Command, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{f: f, fresh: fresh}
	cmd := &cobra.Command{
		Use:   "resubmit NAME",
		Short: "Submit a job again, as it was or changed",
		Long: `Submit a job again, in its namespace. A job that gangctl submitted with flags is submitted by the same command line, which is
kept on it; any other job, or one of a file, by its spec as the cluster has it, without what the API server,
operators and schedulers wrote, and not suspended. Nothing is read from this machine because a kept line has it: what --config-file, --template or -f
named then comes from the job in the cluster. Settings that were in force then, such as a profile, are those of today.

A job has its name for itself as long as it is there: unless its name was generated, the new one needs --name, or the old one has
to be deleted first. --set changes single fields of the job: PATH=VALUE, or PATH- to take a field away.`,
		Example: `  # the same again, under another name
  gangctl resubmit llama --name llama-2

  # with more workers, and wait until all of them run
  gangctl resubmit llama --name llama-8 --set spec.tfReplicaSpecs.Worker.replicas=8 --wait

  # see what it would be
  gangctl resubmit llama --name llama-2 --dry-run=client -o yaml`,
		SuggestFor: []string{"requeue", "rerun", "restart", "retry"},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.NewName, "name", "", "Name of the new job")
	flags.StringArrayVar(&o.Set, "set", nil, "Change a field of the job: PATH=VALUE, or PATH- (repeatable)")
	submit.AddRunFlags(f, cmd)
	o.Bind(cmd, f, func(cmd *cobra.Command) error {
		if cmd.Flags().Changed("name") && o.NewName == "" {
			return failure.Usagef("--name is empty").WithHint("give it a value, or leave it out")
		}
		o.passed = nil
		cmd.Flags().Visit(func(flag *pflag.Flag) {
			own := flag.Name == "name" || flag.Name == "set"
			if !own && (cmd.LocalNonPersistentFlags().Lookup(flag.Name) != nil || flag.Name == "profile" || flag.Name == "color") {
				o.passed = append(o.passed, "--"+flag.Name+"="+flag.Value.String())
			}
		})
		return nil
	}, func(ctx context.Context) error {
		if runF != nil {
			return runF(ctx, o)
		}
		return o.run(ctx)
	})
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	client, job, err := o.Job(ctx)
	if err != nil {
		return err
	}
	if job.Reader.Unmanaged {
		return failure.Errorf("resubmit %s: gangctl submits no %s", job, job.Reader.Title()).
			WithHint("create it again under another name, from what it is: kubectl -n %s get %s.%s %s -o yaml", job.Meta.Namespace, job.Reader.Resource, job.Reader.Group, job.Meta.Name)
	}
	var in *bytes.Buffer
	args, err := o.args(job) //nolint:contextcheck // the command line is read, and no command runs
	if err != nil {
		return err
	}
	if args == nil {
		if args, in, err = o.manifest(ctx, client, job); err != nil {
			return err
		}
		fmt.Fprintf(o.IO.ErrOut, "note: what is repeated is the spec of %s\n", job)
	} else {
		fmt.Fprintf(o.IO.ErrOut, "note: what is repeated: %s\n", redact.CommandLine(shell.Join(append([]string{"gangctl"}, args...)...)))
	}
	f := *o.f
	f.Args = args
	f.Namespace = func() (string, error) { return job.Meta.Namespace, nil }
	f.Client = func() (*kube.Client, error) { return client, nil }
	if in != nil {
		streams := *o.IO
		streams.In = in
		f.IO = &streams
	}
	return o.fresh(&f).ExecuteContext(ctx)
}

// args are those of the command line that the job keeps, or nil if none describes the job. Another user may have written that line:
// what it would read of this machine, and where it would lead, is not taken from it.
func (o *Options) args(job *gang.Job) ([]string, error) {
	more := append([]string{"--namespace=" + job.Meta.Namespace}, o.passed...)
	for _, set := range o.Set {
		more = append(more, argument(set))
	}
	r := submit.Repeat(provenance.Argv(provenance.CommandLine(job.Object)), submit.Replacement{Name: o.NewName, More: more, Variable: variables(job)})
	if r == nil {
		return nil, nil
	}
	if r.Named && o.NewName == "" {
		return nil, o.taken(job)
	}
	if r.Args == nil {
		if o.NewName == "" && o.f.Suffix != nil {
			o.NewName = job.Meta.Name[:max(0, strings.LastIndexByte(job.Meta.Name, '-'))] + "-" + o.f.Suffix() // as tf-x7k2p was
		}
		return nil, nil
	}
	if changed, known := provenance.Changed(job.Object); known && changed {
		fmt.Fprintf(o.IO.ErrOut, "note: %s was changed since it was submitted; what is repeated is its command line\n", job)
	}
	return r.Args, nil
}

// variables are the values of the environment variables that a job gives its members, as they were typed.
func variables(job *gang.Job) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		for _, r := range job.Roles {
			for _, c := range r.Template.Spec.Containers {
				i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name && e.ValueFrom == nil })
				if c.Name != r.Main || i < 0 || strings.Contains(strings.ReplaceAll(c.Env[i].Value, "$$", ""), "$(") {
					continue // a reference to another variable is nothing that can be typed
				}
				return strings.ReplaceAll(c.Env[i].Value, "$$", "$"), true
			}
		}
		return "", false
	}
}

// taken is the error that the name of a job is taken, and what to do.
func (o *Options) taken(job *gang.Job) error {
	state := "still runs"
	if s := summary.Of(job, nil, o.IO.Clock.Now()); s.Finished() {
		state = "has ended, but is still there"
	}
	return failure.Errorf("resubmit %s: it %s, and no other job can have its name", job, state).
		WithHint("give the new one a name with --name %s, or delete the old one: what it was submitted with is in `gangctl describe %s -n %s`",
			next(job.Meta.Name), job.Meta.Name, job.Meta.Namespace)
}

// next is a name like llama-2 after llama, and llama-3 after llama-2.
func next(name string) string {
	prefix, number, ok := cutLast(name)
	if !ok {
		return name + "-2"
	}
	return fmt.Sprintf("%s-%d", prefix, number+1)
}

func cutLast(name string) (prefix string, number int, ok bool) {
	i := strings.LastIndexByte(name, '-')
	if i < 1 || len(name)-i > 5 {
		return "", 0, false
	}
	if _, err := fmt.Sscanf(name[i+1:], "%d", &number); err != nil || fmt.Sprint(number) != name[i+1:] {
		return "", 0, false
	}
	return name[:i], number, true
}

// counts are the fields for how many members a job has, the flag of submit for it, and how many more members that counts.
var counts = []struct {
	field *regexp.Regexp
	flag  string
	more  int
}{
	{regexp.MustCompile(`^spec\.(?:tf|mpi)ReplicaSpecs\.Worker\.replicas=(\d+)$`), "workers", 0},
	{regexp.MustCompile(`^spec\.tfReplicaSpecs\.PS\.replicas=(\d+)$`), "ps", 0},
	{regexp.MustCompile(`^spec\.tfReplicaSpecs\.Chief\.replicas=(\d+)$`), "chief", 0},
	{regexp.MustCompile(`^spec\.tfReplicaSpecs\.Evaluator\.replicas=(\d+)$`), "evaluator", 0},
	{regexp.MustCompile(`^spec\.pytorchReplicaSpecs\.Worker\.replicas=(\d+)$`), "workers", 1}, // submit counts the Master
	{regexp.MustCompile(`^spec\.(?:parallelism|completions)=(\d+)$`), "workers", 0},
}

// argument is the one of submit's command line that changes a field: a number of members has a flag of its own there, because the
// gang's minimum and its sums go by it.
func argument(set string) string {
	for _, c := range counts {
		m := c.field.FindStringSubmatch(set)
		if m == nil {
			continue
		}
		if n, err := strconv.Atoi(m[1]); err == nil {
			return "--" + c.flag + "=" + strconv.Itoa(n+c.more)
		}
	}
	return "--set=" + set
}
