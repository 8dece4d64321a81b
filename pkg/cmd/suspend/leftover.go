package suspend

import (
	"context"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang"
)

// leftover refuses to resume a job that still has pods from before: the operator would take those that end for new ones that
// failed, and fail the job.
func leftover(ctx context.Context, client *kube.Client, op failure.Op, job *gang.Job) error {
	pods, err := jobs.PodsOfNow(ctx, client, job)
	if err != nil {
		return err
	}
	if n := len(pods); n > 0 {
		return failure.Errorf("%s: pods of it that still end: %d; resumed now it would fail", op, n).
			WithHint("try again when they are gone: kubectl -n %s wait --for=delete pod -l %s", job.Meta.Namespace, jobs.PodSelector(job, pods))
	}
	return nil
}
