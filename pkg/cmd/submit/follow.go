package submit

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/await"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/logs"
)

// endTimeout is how long a job whose logs have ended may take to say how it ended.
const endTimeout = 30 * time.Second

// follow prints what the members of a stored job print until it ends, and ends as the job does.
func (s *Submission) follow(ctx context.Context, client *kube.Client, object *unstructured.Unstructured) error {
	job, err := jobs.Read(object)
	if err != nil {
		return err
	}
	if err := logs.Follow(ctx, s.IO, client, job); err != nil {
		if ctx.Err() != nil {
			return failure.WithCode(failure.CodeInterrupted, "interrupted; %s keeps going", job).
				WithHint("go on reading with `gangctl logs %s -n %s -f`, or delete it with `gangctl delete %s -n %s`",
					job.Meta.Name, job.Meta.Namespace, job.Meta.Name, job.Meta.Namespace)
		}
		return err
	}
	// The logs end with the job, and the job says by itself how.
	stored, err := client.Dynamic.Resource(job.Resource).Namespace(job.Meta.Namespace).Get(ctx, job.Meta.Name, metav1.GetOptions{})
	if err == nil && stored.GetUID() == job.Meta.UID {
		if now, err := jobs.Read(stored); err == nil && now.End != nil && !now.End.Failed {
			return nil
		}
	}
	w := &await.Waiter{Client: client, IO: s.IO, Target: await.Done, Timeout: endTimeout}
	return w.Wait(ctx, job)
}
