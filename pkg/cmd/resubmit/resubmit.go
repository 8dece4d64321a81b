// Package resubmit is `gangctl resubmit`: it submits a job again.
package resubmit

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/submit"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
)

// Options are what the command works with.
type Options struct {
	cmdutil.JobOptions

	NewName string
	Set     []string

	// passed are the words of the flags that go to submit as they are.
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
operators and schedulers wrote. Settings that were in force then, such as a profile, are those of today.

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
	var in *bytes.Buffer
	words, err := o.words(job) //nolint:contextcheck // the command line is read, and no command runs
	if err != nil {
		return err
	}
	if words == nil {
		if words, in, err = o.manifest(job); err != nil {
			return err
		}
	}
	f := *o.f
	f.Args = words
	f.Namespace = func() (string, error) { return job.Meta.Namespace, nil }
	f.Client = func() (*kube.Client, error) { return client, nil }
	if in != nil {
		streams := *o.IO
		streams.In = in
		f.IO = &streams
	}
	return o.fresh(&f).ExecuteContext(ctx)
}

// words are those of the command line that the job keeps, or nil if there is none that says what it is.
func (o *Options) words(job *gang.Job) ([]string, error) {
	line := provenance.CommandLine(job.Object)
	if line == "" {
		return nil, nil
	}
	kept, err := shell.Split(line)
	if err != nil {
		return nil, failure.Errorf("%s keeps the command line %q: %w", job, line, err)
	}
	more := append([]string{"--namespace=" + job.Meta.Namespace}, o.passed...)
	for _, set := range o.Set {
		more = append(more, word(set))
	}
	r := submit.Repeat(kept, o.NewName, more...)
	if r == nil || r.File {
		return nil, nil
	}
	if r.Named && o.NewName == "" {
		return nil, o.taken(job)
	}
	if changed, known := provenance.Changed(job.Object); known && changed {
		fmt.Fprintf(o.IO.ErrOut, "note: %s was changed since it was submitted; what is repeated is its command line\n", job)
	}
	return r.Words, nil
}

// taken says that the name of a job is its own, and what to do.
func (o *Options) taken(job *gang.Job) error {
	state := "still runs"
	if s := summary.Of(job, nil); s.Finished() {
		state = "has ended, but is still there"
	}
	return failure.Errorf("resubmit %s: it %s, and no other job can have its name", job, state).
		WithHint("give the new one a name with --name %s, or delete the old one: what it was submitted with is in `gangctl describe %s -n %s`",
			next(job.Meta.Name), job.Meta.Name, job.Meta.Namespace)
}

// next is a name like llama-2 after llama, and llama-3 after llama-2.
func next(name string) string {
	stem, number, ok := cutLast(name)
	if !ok {
		return name + "-2"
	}
	return fmt.Sprintf("%s-%d", stem, number+1)
}

func cutLast(name string) (stem string, number int, ok bool) {
	i := strings.LastIndexByte(name, '-')
	if i < 1 || len(name)-i > 5 {
		return "", 0, false
	}
	if _, err := fmt.Sscanf(name[i+1:], "%d", &number); err != nil || fmt.Sprint(number) != name[i+1:] {
		return "", 0, false
	}
	return name[:i], number, true
}
