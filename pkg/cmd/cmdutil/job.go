package cmdutil

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind"
)

// JobOptions are the dependencies and arguments of a command about one job.
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
		if len(args) == 1 {
			return nil
		}
		hint := "for all jobs: gangctl list"
		if len(args) == 2 {
			hint = cmp.Or(kindApart(cmd, args), hint)
		}
		return failure.Usagef("%s needs the name of one job, got %d", cmd.Name(), len(args)).WithHint("%s", hint)
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

// kindApart is the hint for KIND NAME, as kubectl has it; empty for arguments that begin with no kind.
func kindApart(cmd *cobra.Command, args []string) string {
	if _, known := kind.ByName(args[0]); !known && args[0] != "job" && args[0] != "jobs" {
		return ""
	}
	line := cmd.CommandPath()
	for _, name := range args[1:] {
		line += " " + shell.Quote(args[0]+"/"+name)
	}
	return "a kind and a name are one argument: " + line
}

// SeveralJobs takes the arguments of a command about one job or more. KIND NAME is refused: the one job would be done, and the kind be the name of none.
func SeveralJobs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return failure.Usagef("%s needs the name of a job", cmd.Name()).WithHint("see them with `gangctl list`")
	}
	if len(args) == 1 {
		return nil
	}
	if hint := kindApart(cmd, args); hint != "" {
		return failure.Usagef("%s %s: %s is a kind, not the name of a job", cmd.Name(), shell.Join(args...), args[0]).WithHint("%s; a job that is called so is job/%s", hint, args[0])
	}
	return nil
}

// Connect returns the client and the namespace that a command works with.
func Connect(clientOf func() (*kube.Client, error), namespaceOf func() (string, error)) (client *kube.Client, namespace string, err error) {
	if namespace, err = namespaceOf(); err != nil {
		return nil, "", err
	}
	client, err = clientOf()
	return client, namespace, err
}

// Job gets the job from the cluster.
func (o *JobOptions) Job(ctx context.Context) (*kube.Client, *gang.Job, error) {
	client, namespace, err := Connect(o.Client, o.Namespace)
	if err != nil {
		return nil, nil, err
	}
	job, err := ReadJob(ctx, client, namespace, o.Name)
	return client, job, err
}

// JobAndPods gets the job, with the minimum of its gang, and its pods.
func (o *JobOptions) JobAndPods(ctx context.Context) (*kube.Client, *gang.Job, []*corev1.Pod, error) {
	client, job, err := o.Job(ctx)
	if err != nil {
		if namespace, unknown := o.Namespace(); unknown == nil {
			err = failure.Needing(err, jobs.ListPods(namespace))
		}
		return nil, nil, nil, err
	}
	jobs.Foresee(ctx, client, []*gang.Job{job})
	NoteUnreadMinimums(o.IO, jobs.Minimums(ctx, client, job.Meta.Namespace, []*gang.Job{job}))
	pods, err := jobs.PodsOf(ctx, client, job)
	return client, job, pods, err
}

// NoteUnreadMinimums reports why group objects could not be read, which have the minimum of gangs; nil for nothing.
func NoteUnreadMinimums(io *iostreams.IOStreams, unread error) {
	if unread != nil {
		fmt.Fprintf(io.ErrOut, "note: how many members must start together is not known, and shown as all of them: %s\n", unread)
	}
}

// ReadJob gets the job of a name, or of KIND/NAME, as the cluster has it. That there is none is an error with names that resemble it.
func ReadJob(ctx context.Context, client *kube.Client, namespace, name string) (*gang.Job, error) {
	job, err := jobs.Find(ctx, client, namespace, name)
	if err != nil {
		return nil, explainNotFound(ctx, client, err)
	}
	return job, nil
}

// similarJobs are what to type instead of a name that no job has: the job of another kind that has it, or names in the namespace that resemble it. It is
// nil if the cluster does not list them in time. They come from the API server's cache, as whole jobs: to request their metadata alone takes a client of its
// own, and completionBudget bounds what they may cost.
func similarJobs(ctx context.Context, client *kube.Client, namespace, name string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionBudget)
	defer cancel()
	all, err := jobs.List(ctx, client, jobs.Selection{Namespace: namespace})
	if err != nil {
		return nil
	}
	var names, ofOtherKinds []string
	for _, job := range all.Jobs {
		names = append(names, job.Meta.Name)
		if job.Meta.Name == name {
			ofOtherKinds = append(ofOtherKinds, job.Reader.Argument(name))
		}
	}
	if len(ofOtherKinds) > 0 {
		return ofOtherKinds
	}
	return suggest.Similar(name, names)
}

// explainNotFound adds, to the error of a job that is not there, names that resemble its own, and what to type instead.
func explainNotFound(ctx context.Context, client *kube.Client, err error) error {
	var missing *gang.JobNotFoundError
	if errors.As(err, &missing) && missing.Nearest == nil {
		similar := *missing
		similar.Nearest = similarJobs(ctx, client, missing.Namespace, missing.Name)
		switch {
		case len(similar.Nearest) > 0:
			err = &similar
		case namespaceMissing(ctx, client, missing.Namespace):
			return failure.Errorf("%w", err).WithHint("there is no namespace %s: choose another one with -n", missing.Namespace)
		}
	}
	return ExplainName(err, "")
}

// ExplainName adds a hint to the error for a name that no job has, or jobs of several kinds, in the cluster or in the file from: what to type
// instead. Other errors are returned as they are, and so is one with the rules that the caller lacks for a closer look.
func ExplainName(err error, from string) error {
	var missing *gang.JobNotFoundError
	var ambiguous *gang.AmbiguousJobError
	switch {
	case errors.As(err, &ambiguous):
		return failure.Usagef("%w", err).WithHint("name one: %s", strings.Join(ambiguous.Choices(), " or "))
	case !errors.As(err, &missing):
		return err
	case len(missing.Instead) > 0:
		return failure.Errorf("%w", err).WithHint("%s", strings.Join(missing.Instead, "; "))
	case len(missing.Nearest) > 0:
		return failure.Errorf("%w", err).WithHint("did you mean %s?", strings.Join(missing.Nearest, " or "))
	case len(missing.Elsewhere) > 0:
		return failure.Errorf("%w", err).WithHint("there is one in namespace %s: add -n %s", strings.Join(missing.Elsewhere, ", "), missing.Elsewhere[0])
	case failure.From(err).Hint != "":
		return err
	case from != "":
		return failure.Errorf("%w", err).WithHint("see the jobs in the file with `gangctl top job -A --from %s`, or choose a namespace of it with -n", shell.Quote(from))
	default:
		return failure.Errorf("%w", err).WithHint("see the jobs of every namespace with `gangctl list -A`, or choose one with -n")
	}
}
