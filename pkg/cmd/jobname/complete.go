package jobname

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cmd/complete"
	"github.com/gangctl/gangctl/pkg/jobs"
	"github.com/gangctl/gangctl/pkg/kube"
	"github.com/gangctl/gangctl/pkg/workload/registry"
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

// roles are those of the job that args name.
func roles(ctx context.Context, client *kube.Client, namespace string, args []string) ([]cobra.Completion, error) {
	if len(args) == 0 {
		return nil, nil
	}
	job, err := jobs.Find(ctx, client, namespace, args[0])
	if err != nil {
		return nil, err
	}
	return rolesOf(job.Object)
}

func rolesOf(job *unstructured.Unstructured) ([]cobra.Completion, error) {
	reader, known := registry.ByKind(job.GroupVersionKind().GroupKind())
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
