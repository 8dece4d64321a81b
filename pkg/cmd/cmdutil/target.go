package cmdutil

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/summary"
)

// Target is the job that an argument names, or one member of it.
type Target struct {
	Job  *gang.Job
	Pods []*corev1.Pod
	// Member is nil where all of the job is meant.
	Member *summary.Row
}

// ResolveTarget finds what an argument names: the name of a job, KIND/NAME of one, pod/NAME of a member, or the bare name of a
// member's pod, if no job has that name.
func ResolveTarget(ctx context.Context, client *kube.Client, namespace, arg string) (*Target, error) {
	if name, ok := jobs.PodName(arg); ok {
		return resolvePod(ctx, client, namespace, name)
	}
	job, err := jobs.Find(ctx, client, namespace, arg)
	var missing *gang.JobNotFoundError
	if errors.As(err, &missing) && missing.Name == arg {
		m, podErr := resolvePod(ctx, client, namespace, arg)
		if podErr == nil {
			return m, nil
		}
		// A pod that exists and is of no job is worth an error; one that does not, or may not be seen, was not meant.
		if !apierrors.IsNotFound(podErr) && !apierrors.IsForbidden(podErr) {
			return nil, podErr
		}
	}
	if err != nil {
		return nil, explainNotFound(ctx, client, err)
	}
	pods, err := jobs.PodsOf(ctx, client, job)
	return &Target{Job: job, Pods: pods}, err
}

// ChosenTwice is the usage error of an argument that names a member, with flags that choose one.
func (m *Target) ChosenTwice(arg string) error {
	return failure.Usagef("%s is a member already: --role and --index have no effect", arg).WithHint("leave them out, or name the job: %s", m.Job.Meta.Name)
}

func resolvePod(ctx context.Context, client *kube.Client, namespace, name string) (*Target, error) {
	job, pod, err := jobs.OfPod(ctx, client, namespace, name)
	if err != nil {
		return nil, err
	}
	pods, err := jobs.PodsOf(ctx, client, job)
	if err != nil {
		return nil, err
	}
	members := summary.Rows(job, pods)
	for i := range members {
		if members[i].Pod != nil && members[i].Pod.UID == pod.UID && members[i].Pod.Name == name {
			return &Target{Job: job, Pods: pods, Member: &members[i]}, nil
		}
	}
	return nil, failure.Errorf("pod %s/%s is no member of %s any more", namespace, name, job).WithHint("see its members: gangctl get %s -n %s", job.Reader.Argument(job.Meta.Name), namespace)
}
