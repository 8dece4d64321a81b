// Package delete is `gangctl delete`.
package delete

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/prompt"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Options are the dependencies, flags and arguments of the command.
type Options struct {
	IO        *iostreams.IOStreams
	Namespace func() (string, error)
	Client    func() (*kube.Client, error)
	// Prompter confirms the deletion of another user's job.
	Prompter prompt.Prompter

	Names []string
	// Yes deletes jobs of others without a prompt.
	Yes     bool
	Wait    bool
	Timeout time.Duration
}

// NewCommand returns the command; runF replaces the run in tests.
func NewCommand(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{IO: f.IO, Namespace: f.Namespace, Client: f.Client, Prompter: prompt.New(f.IO)}
	cmd := &cobra.Command{
		Use:     "delete NAME…",
		Aliases: []string{"rm"},
		Short:   "Delete jobs, their members and their gangs",
		Long: `Delete jobs of any kind, whoever created them, and wait until their pods are gone. A PodGroup that gangctl made goes with its job.
Every name is tried; the exit code is 1 if any failed.

A job keeps who submitted it with gangctl. Before another user's job is deleted, you have to confirm it, at a prompt or with --yes.`,
		Example: `  # one job, and wait until its GPUs are free
  gangctl delete llama

  # two jobs, without waiting
  gangctl delete llama mistral --wait=false`,
		SuggestFor:        []string{"scancel", "qdel", "kill", "cancel", "remove", "stop"},
		Args:              cmdutil.SeveralJobs,
		ValidArgsFunction: cmdutil.CompleteJobs(f, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			slices.Sort(args)
			o.Names = slices.Compact(args)
			if err := o.validate(cmd); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVarP(&o.Yes, "yes", "y", false, "Delete jobs of other users without confirmation")
	cmd.Flags().BoolVar(&o.Wait, "wait", true, "Return when the job and its pods are gone")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 0, "How long --wait waits for each job, such as 2m (default: no limit)")
	return cmd
}

func (o *Options) validate(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed("timeout")
	switch {
	case changed && !o.Wait:
		return failure.Usagef("--timeout has no effect with --wait=false").WithHint("leave out one of the two flags")
	case o.Timeout < 0, changed && o.Timeout == 0:
		return failure.Usagef("--timeout %s: must be greater than zero, such as 2m", o.Timeout).WithHint("leave out --timeout to wait without limit")
	}
	return nil
}

func (o *Options) run(ctx context.Context) error {
	client, namespace, err := cmdutil.Connect(o.Client, o.Namespace)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var failures []error
	var deleted []*gang.Job
	who := &cmdutil.Caller{Client: client, Prompter: o.Prompter, Verb: "delete", Yes: o.Yes}
	pods := map[types.UID][]*corev1.Pod{}
	for i, name := range o.Names {
		job, known, err := o.deleteOne(ctx, who, namespace, name)
		if failure.Interrupted(err) {
			failures = append(failures, cmdutil.Untried(err, o.Names[i:])...)
			stop() // at a prompt, which does not end the context
			break
		}
		if err != nil {
			failures = append(failures, err)
			continue
		}
		pods[job.Meta.UID] = known
		deleted = append(deleted, job)
		if !o.Wait {
			fmt.Fprintf(o.IO.Out, "%s deleted\n", job.Ref())
		}
	}
	for _, job := range deleted {
		if !o.Wait {
			continue
		}
		if err := o.waitGone(ctx, client, job, pods[job.Meta.UID]); err != nil {
			failures = append(failures, err)
			continue
		}
		fmt.Fprintf(o.IO.Out, "%s deleted\n", job.Ref())
	}
	return failure.AllBut(len(deleted), failures...)
}

// deleteOne deletes a job: the one that was seen, and no later one of its name. To wait for it, its pods are read.
func (o *Options) deleteOne(ctx context.Context, who *cmdutil.Caller, namespace, name string) (*gang.Job, []*corev1.Pod, error) {
	client := who.Client
	job, err := cmdutil.ReadJob(ctx, client, namespace, name)
	if err != nil {
		return nil, nil, failure.NeedingVerb(err, "delete")
	}
	if err := who.May(ctx, job); err != nil {
		return nil, nil, err
	}
	var pods []*corev1.Pod
	if o.Wait {
		if pods, err = jobs.PodsOf(ctx, client, job); err != nil {
			return nil, nil, err
		}
	}
	background, uid := metav1.DeletePropagationBackground, job.Meta.UID
	options := metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid}}
	err = client.Dynamic.Resource(job.Resource()).Namespace(job.Meta.Namespace).Delete(ctx, job.Meta.Name, options)
	if errors.Is(err, context.Canceled) {
		return nil, nil, cmdutil.Sent(jobs.Op(job, "delete"))
	}
	return job, pods, jobs.Op(job, "delete").Wrap(err)
}
