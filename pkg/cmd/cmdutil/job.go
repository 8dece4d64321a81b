package cmdutil

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang"
)

// JobOptions are what a command about one job works with.
type JobOptions struct {
	IO        *iostreams.IOStreams
	Namespace func() (string, error)
	Client    func() (*kube.Client, error)

	// Name is NAME, or KIND/NAME.
	Name string
}

// Bind makes a command take the name of one job. Flags are checked before it runs; validate may be nil.
func (o *JobOptions) Bind(cmd *cobra.Command, f *Factory, validate func(*cobra.Command) error, run func(context.Context) error) {
	o.IO = f.IO
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return failure.Usagef("%s needs the name of one job, got %d", cmd.Name(), len(args)).WithHint("for all jobs: gangctl list")
		}
		return nil
	}
	cmd.ValidArgsFunction = CompleteJobs(f, 1)
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

// Job gets the job from the cluster.
func (o *JobOptions) Job(ctx context.Context) (*kube.Client, *gang.Job, error) {
	namespace, err := o.Namespace()
	if err != nil {
		return nil, nil, err
	}
	client, err := o.Client()
	if err != nil {
		return nil, nil, err
	}
	job, err := ReadJob(ctx, client, namespace, o.Name)
	return client, job, err
}

// JobAndPods gets the job and its pods.
func (o *JobOptions) JobAndPods(ctx context.Context) (*kube.Client, *gang.Job, []*corev1.Pod, error) {
	client, job, err := o.Job(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	pods, err := jobs.PodsOf(ctx, client, job)
	return client, job, pods, err
}

// ReadJob gets the job of a name, or of KIND/NAME, as the cluster has it. That there is none is an error with names that resemble it.
func ReadJob(ctx context.Context, client *kube.Client, namespace, name string) (*gang.Job, error) {
	job, err := jobs.Find(ctx, client, namespace, name)
	if err != nil {
		return nil, explainNotFound(ctx, client, err)
	}
	return job, nil
}

// similarJobs are at most three names of jobs in the namespace that resemble name: one contains the other, or they start alike. It
// is nil if there are none or the cluster does not tell.
func similarJobs(ctx context.Context, client *kube.Client, namespace, name string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionBudget)
	defer cancel()
	names, err := jobNames(ctx, client, namespace)
	if err != nil {
		return nil
	}
	names = slices.DeleteFunc(names, func(other string) bool {
		start := min(len(name), len(other), 3)
		return !strings.Contains(other, name) && !strings.Contains(name, other) && !strings.HasPrefix(other, name[:start])
	})
	return names[:min(len(names), 3)]
}

// explainNotFound adds, to the error of a job that is not there, names that resemble its own.
func explainNotFound(ctx context.Context, client *kube.Client, err error) error {
	var missing *jobs.NotFoundError
	if !errors.As(err, &missing) {
		return err
	}
	explained := failure.Errorf("%w", err)
	if near := similarJobs(ctx, client, missing.Namespace, missing.Name); len(near) > 0 {
		return explained.WithHint("did you mean %s?", strings.Join(near, " or "))
	}
	return explained.WithHint("see the jobs of every namespace with `gangctl list -A`, or choose one with -n")
}

// jobNames returns the names of all jobs that may be seen, sorted, from the API server's cache. It gets whole jobs: to ask for their
// metadata alone takes a client of its own, and completionBudget bounds what they may cost.
func jobNames(ctx context.Context, client *kube.Client, namespace string) ([]string, error) {
	all, err := jobs.List(ctx, client, namespace, "")
	if err != nil {
		return nil, err
	}
	names := make([]string, len(all.Jobs))
	for i, job := range all.Jobs {
		names[i] = job.Meta.Name
	}
	return slices.Compact(names), nil
}
