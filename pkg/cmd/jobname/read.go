package jobname

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
)

// Read gets the job of a name, or of KIND/NAME, as the cluster has it. That there is none is an error with names that resemble it.
func Read(ctx context.Context, client *kube.Client, namespace, name string) (*jobs.Job, error) {
	job, err := jobs.Find(ctx, client, namespace, name)
	if err != nil {
		return nil, Explain(ctx, client, err)
	}
	return job, nil
}

// ReadAll gets the job of a name and its pods.
func ReadAll(ctx context.Context, client *kube.Client, namespace, name string) (*jobs.Job, []*corev1.Pod, error) {
	job, err := Read(ctx, client, namespace, name)
	if err != nil {
		return nil, nil, err
	}
	pods, err := jobs.PodsOf(ctx, client, job)
	return job, pods, err
}
