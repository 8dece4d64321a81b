package jobname

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/complete"
	"github.com/gangctl/gangctl/pkg/gang/kind"
)

// states are the names of the jobs that args lack, each with its state. Without the pods the names alone are worth having.
func states(ctx context.Context, client *kube.Client, namespace string, args []string) ([]cobra.Completion, error) {
	all, err := jobs.List(ctx, client, namespace, "")
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, complete.Budget/2) // before the time of the whole answer is over
	defer cancel()
	pods, unknown := jobs.PodsOfAll(limited, client, namespace, all.Jobs)
	var words []cobra.Completion
	for _, job := range all.Jobs {
		switch name := job.Meta.Name; {
		case slices.Contains(args, name):
		case unknown != nil:
			words = append(words, name)
		default:
			words = append(words, cobra.CompletionWithDesc(name, string(job.Summary(pods[job.Meta.UID]).State)))
		}
	}
	return words, nil
}

// members are the names of jobs, each with its state; after pod/, or where no job begins like that, those of their pods.
func members(ctx context.Context, client *kube.Client, namespace, prefix string) ([]cobra.Completion, error) {
	name, byPod := jobs.PodName(prefix)
	if !byPod {
		words, err := states(ctx, client, namespace, nil)
		if err != nil || prefix == "" || slices.ContainsFunc(words, func(w cobra.Completion) bool { return strings.HasPrefix(w, prefix) }) {
			return words, err
		}
	}
	all, err := jobs.List(ctx, client, namespace, "")
	if err != nil {
		return nil, err
	}
	pods, err := jobs.PodsOfAll(ctx, client, namespace, all.Jobs)
	if err != nil {
		return nil, err
	}
	var words []cobra.Completion
	before := "" // pod/
	if byPod {
		before = strings.TrimSuffix(prefix, name)
	}
	for _, job := range all.Jobs {
		for _, m := range job.Members(pods[job.Meta.UID]) {
			if m.Pod != nil {
				words = append(words, cobra.CompletionWithDesc(before+m.Pod.Name, string(m.State)))
			}
		}
	}
	return words, nil
}

// roles are those of the job that args name.
func roles(ctx context.Context, client *kube.Client, namespace string, args []string) ([]cobra.Completion, error) {
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
	return rolesOf(job.Object)
}

func rolesOf(job *unstructured.Unstructured) ([]cobra.Completion, error) {
	reader, known := kind.ByKind(job.GroupVersionKind().GroupKind())
	if !known {
		return nil, nil
	}
	read, err := reader.Read(job)
	if err != nil {
		return nil, err
	}
	var words []cobra.Completion
	for _, role := range read.Roles {
		members := fmt.Sprintf("%d members", role.Replicas)
		if role.Replicas == 1 {
			members = "1 member"
		}
		words = append(words, cobra.CompletionWithDesc(strings.ToLower(role.Name), members))
	}
	return words, nil
}
