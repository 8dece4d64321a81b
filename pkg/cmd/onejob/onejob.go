// Package onejob is what all commands about one job have in common: they take its name, complete it, and read the job.
package onejob

import (
	"context"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/factory"
	"github.com/gangctl/gangctl/pkg/cmd/jobname"
)

// Options are what a command about one job works with.
type Options struct {
	IO        *iostreams.IOStreams
	Namespace func() (string, error)
	Client    func() (*kube.Client, error)

	// Name is NAME, or KIND/NAME.
	Name string
}

// Bind makes a command take the name of one job. Flags are checked before it runs; validate may be nil.
func (o *Options) Bind(cmd *cobra.Command, f *factory.Factory, validate func(*cobra.Command) error, run func(context.Context) error) {
	o.IO = f.IO
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return failure.Usagef("%s needs the name of one job, got %d", cmd.Name(), len(args)).WithHint("for all jobs: gangctl list")
		}
		return nil
	}
	cmd.ValidArgsFunction = jobname.Complete(f, 1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.Namespace, o.Client, o.Name = f.Namespace, f.Client, args[0]
		if validate != nil {
			if err := validate(cmd); err != nil {
				return err
			}
		}
		return run(cmd.Context())
	}
}

// Read gets the job.
func (o *Options) Read(ctx context.Context) (*kube.Client, *jobs.Job, error) {
	namespace, err := o.Namespace()
	if err != nil {
		return nil, nil, err
	}
	client, err := o.Client()
	if err != nil {
		return nil, nil, err
	}
	job, err := jobname.Read(ctx, client, namespace, o.Name)
	return client, job, err
}

// ReadAll gets the job and its pods.
func (o *Options) ReadAll(ctx context.Context) (*kube.Client, *jobs.Job, []*corev1.Pod, error) {
	client, job, err := o.Read(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	pods, err := jobs.PodsOf(ctx, client, job)
	return client, job, pods, err
}
