// Package jobname knows the names of the jobs in a namespace: for completion, for a hint after a slip of the finger, and to read
// the job of a name with its pods.
package jobname

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/complete"
	"github.com/gangctl/gangctl/pkg/cmd/factory"
)

// Complete completes job names that are not on the command line yet, with the state of each job; at most max names in all, 0 is
// no limit. It is silent on errors.
func Complete(f *factory.Factory, max int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if max > 0 && len(args) >= max {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete.Cluster(f, states)(cmd, args, prefix)
	}
}

// CompleteMembers completes what [Mean] reads: the name of a job; after pod/, or what is the name of no job, that of a member's pod.
func CompleteMembers(f *factory.Factory) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete.Cluster(f, func(ctx context.Context, client *kube.Client, namespace string, _ []string) ([]cobra.Completion, error) {
			return members(ctx, client, namespace, prefix)
		})(cmd, args, prefix)
	}
}

// CompleteRoles completes the roles of the job on the command line, in lower case, with how many members each has.
func CompleteRoles(f *factory.Factory) cobra.CompletionFunc {
	return complete.Cluster(f, roles)
}

// Near are at most three names of jobs in the namespace that resemble name: one contains the other, or they start alike. It
// is nil if there are none or the cluster does not tell.
func Near(ctx context.Context, client *kube.Client, namespace, name string) []string {
	ctx, cancel := context.WithTimeout(ctx, complete.Budget)
	defer cancel()
	names, err := list(ctx, client, namespace)
	if err != nil {
		return nil
	}
	names = slices.DeleteFunc(names, func(other string) bool {
		start := min(len(name), len(other), 3)
		return !strings.Contains(other, name) && !strings.Contains(name, other) && !strings.HasPrefix(other, name[:start])
	})
	return names[:min(len(names), 3)]
}

// Explain adds, to the error of a job that is not there, names that resemble its own.
func Explain(ctx context.Context, client *kube.Client, err error) error {
	var missing *jobs.NotFoundError
	if !errors.As(err, &missing) {
		return err
	}
	explained := failure.Errorf("%w", err)
	if near := Near(ctx, client, missing.Namespace, missing.Name); len(near) > 0 {
		return explained.WithHint("did you mean %s?", strings.Join(near, " or "))
	}
	return explained.WithHint("see the jobs of every namespace with `gangctl list -A`, or choose one with -n")
}

// list returns the names of all jobs that may be seen, sorted, from the API server's cache. It gets whole jobs: to ask for their
// metadata alone takes a client of its own, and complete.Budget bounds what they may cost.
func list(ctx context.Context, client *kube.Client, namespace string) ([]string, error) {
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
