package cmdutil

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/summary"
)

// CompleteJobs completes job names that are not on the command line yet, after KIND/ those of a kind, with the state of each job; at most max
// names in all, 0 is no limit. Jobs that the command does not take are left out. It is silent on errors.
func CompleteJobs(f *Factory, max int, takes ...func(*gang.Job) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if max > 0 && len(args) >= max {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return CompleteFromCluster(f, func(ctx context.Context, client *kube.Client, namespace string, args []string) ([]cobra.Completion, error) {
			return findJobs(ctx, client, namespace, args, prefix, takes...)
		})(cmd, args, prefix)
	}
}

// CompleteMembers completes what [ResolveTarget] reads: the name of a job; after pod/, or what is the name of no job, that of a member's pod.
func CompleteMembers(f *Factory) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return CompleteFromCluster(f, func(ctx context.Context, client *kube.Client, namespace string, _ []string) ([]cobra.Completion, error) {
			return findMembers(ctx, client, namespace, prefix)
		})(cmd, args, prefix)
	}
}

// CompleteRoles completes the roles of the job on the command line, in lower case, with how many members each has.
func CompleteRoles(f *Factory) cobra.CompletionFunc {
	return completeFromRoles(f, func(roles []gang.Role) (found []cobra.Completion) {
		for _, role := range roles {
			members := fmt.Sprintf("%d members", role.Replicas)
			if role.Replicas == 1 {
				members = "1 member"
			}
			found = append(found, cobra.CompletionWithDesc(strings.ToLower(role.Name), members))
		}
		return found
	})
}

// CompleteIndexes completes the indexes of the members of the job on the command line, with the roles that have each.
func CompleteIndexes(f *Factory) cobra.CompletionFunc {
	return completeFromRoles(f, func(roles []gang.Role) (found []cobra.Completion) {
		for i := range int32(maxCompletions) {
			var of []string
			for _, role := range roles {
				if i < role.Replicas {
					of = append(of, strings.ToLower(role.Name))
				}
			}
			if len(of) > 0 {
				found = append(found, cobra.CompletionWithDesc(fmt.Sprint(i), strings.Join(of, ", ")))
			}
		}
		return found
	})
}

// completeFromRoles completes with what a function makes of the roles of the job on the command line.
func completeFromRoles(f *Factory, of func([]gang.Role) []cobra.Completion) cobra.CompletionFunc {
	return CompleteFromCluster(f, func(ctx context.Context, client *kube.Client, namespace string, args []string) ([]cobra.Completion, error) {
		if len(args) == 0 {
			return nil, nil
		}
		if _, byPod := jobs.PodName(args[0]); byPod {
			return nil, nil // that is a member already
		}
		job, err := jobs.Find(ctx, client, namespace, args[0])
		if err != nil {
			return nil, err
		}
		return of(job.Roles), nil
	})
}

// findJobs are the names of the jobs that args lack, each with its state, whatever the time is; if the prefix has one, of a kind and after it. Without
// the pods the names alone are worth having.
func findJobs(ctx context.Context, client *kube.Client, namespace string, args []string, prefix string, takes ...func(*gang.Job) bool) ([]cobra.Completion, error) {
	typed, _, byKind := strings.Cut(prefix, "/")
	only, ofKind := kind.ByName(typed)
	if typed == "job" || typed == "jobs" {
		ofKind = false // which are those of any kind
	} else if byKind && !ofKind {
		return nil, nil
	}
	all, err := jobs.List(ctx, client, jobs.Selection{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, completionBudget/2) // before the time of the whole answer is over
	defer cancel()
	pods, unknown := jobs.PodsOfAll(limited, client, namespace, all.Jobs, nil)
	var found []cobra.Completion
	for _, job := range all.Jobs {
		name := job.Meta.Name
		if byKind {
			name = typed + "/" + name
		}
		switch {
		case byKind && ofKind && job.Kind.GroupKind() != only.GroupKind, slices.Contains(args, name), slices.ContainsFunc(takes, func(takes func(*gang.Job) bool) bool { return !takes(job) }):
		case unknown != nil:
			found = append(found, name)
		default:
			found = append(found, cobra.CompletionWithDesc(name, string(summary.Of(job, pods[job.Meta.UID], time.Time{}).State)))
		}
	}
	return found, nil
}

// findMembers are the names of jobs, each with its state; after pod/, or where no job begins like that, those of their pods.
func findMembers(ctx context.Context, client *kube.Client, namespace, prefix string) ([]cobra.Completion, error) {
	name, byPod := jobs.PodName(prefix)
	if !byPod {
		found, err := findJobs(ctx, client, namespace, nil, prefix)
		if err != nil || prefix == "" || slices.ContainsFunc(found, func(w cobra.Completion) bool { return strings.HasPrefix(w, prefix) }) {
			return found, err
		}
	}
	all, err := jobs.List(ctx, client, jobs.Selection{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	pods, err := jobs.PodsOfAll(ctx, client, namespace, all.Jobs, nil)
	if err != nil {
		return nil, err
	}
	var found []cobra.Completion
	before := "" // pod/
	if byPod {
		before = strings.TrimSuffix(prefix, name)
	}
	for _, job := range all.Jobs {
		for _, m := range summary.Rows(job, pods[job.Meta.UID]) {
			if m.Pod != nil {
				found = append(found, cobra.CompletionWithDesc(before+m.Pod.Name, string(m.State)))
			}
		}
	}
	return found, nil
}
