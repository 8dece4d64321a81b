// Package delete is `gangctl delete`.
package delete

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cmd/factory"
	"github.com/gangctl/gangctl/pkg/cmd/jobname"
	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/iostreams"
	"github.com/gangctl/gangctl/pkg/kube"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
)

// Options are what the command works with.
type Options struct {
	IO        *iostreams.IOStreams
	Namespace func() (string, error)
	Client    func() (*kube.Client, error)

	Names   []string
	Wait    bool
	Timeout time.Duration
}

// NewCommand returns the command; runF replaces the run in tests.
func NewCommand(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{IO: f.IO}
	cmd := &cobra.Command{
		Use:     "delete NAME…",
		Aliases: []string{"rm"},
		Short:   "Delete jobs, their members and their gangs",
		Long: `Delete TFJobs, whoever created them, and wait until their pods are gone. A PodGroup that gangctl made goes with its job.
Every name is tried; the exit code is 1 if any failed.`,
		Example: `  # one job, and wait until its GPUs are free
  gangctl delete llama

  # two jobs, without waiting
  gangctl delete llama mistral --wait=false`,
		SuggestFor: []string{"scancel", "qdel", "kill", "cancel", "remove", "stop"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return failure.Usagef("delete needs the name of a job").WithHint("see them with `gangctl list`")
			}
			return nil
		},
		ValidArgsFunction: jobname.Complete(f, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Namespace, o.Client = f.Namespace, f.Client
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
	namespace, err := o.Namespace()
	if err != nil {
		return err
	}
	client, err := o.Client()
	if err != nil {
		return err
	}
	var failures []error
	deleted := map[string]types.UID{}
	for _, name := range o.Names {
		uid, err := o.deleteOne(ctx, client, namespace, name)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		deleted[name] = uid
		if !o.Wait {
			o.printDeleted(name)
		}
	}
	for _, name := range o.Names {
		uid, ok := deleted[name]
		if !ok || !o.Wait {
			continue
		}
		if err := o.waitGone(ctx, client, namespace, name, uid); err != nil {
			failures = append(failures, err)
			continue
		}
		o.printDeleted(name)
	}
	return failure.All(failures...)
}

// printDeleted says so as kubectl does of what it creates: tfjob.kubeflow.org/NAME deleted.
func (o *Options) printDeleted(name string) {
	kind := tfjob.GVK().GroupKind()
	fmt.Fprintf(o.IO.Out, "%s.%s/%s deleted\n", strings.ToLower(kind.Kind), kind.Group, name)
}

// deleteOne deletes a job. To wait for it, its uid must be known, which tells it from a later job of the same name; without
// waiting, no more than the right to delete is needed.
func (o *Options) deleteOne(ctx context.Context, client *kube.Client, namespace, name string) (types.UID, error) {
	op := failure.Op{Verb: "delete", Resource: tfjob.GVR(), Kind: tfjob.Kind, Namespace: namespace, Name: name}
	jobs := client.Dynamic.Resource(tfjob.GVR()).Namespace(namespace)
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	var uid types.UID
	if o.Wait {
		job, err := jobs.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", jobname.NotFound(ctx, client, op, err)
		}
		uid = job.GetUID()
		options.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	if err := jobs.Delete(ctx, name, options); err != nil {
		return "", jobname.NotFound(ctx, client, op, err)
	}
	return uid, nil
}
