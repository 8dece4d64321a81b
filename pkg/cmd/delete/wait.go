package delete

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/follow"
	"github.com/gangctl/gangctl/pkg/kube"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
)

// errTimedOut is why the context of a wait ended.
var errTimedOut = errors.New("timed out")

// waitGone returns when neither the job of the uid nor any pod of it is left. Only then are its resources free.
func (o *Options) waitGone(ctx context.Context, client *kube.Client, namespace, name string, uid types.UID) error {
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, errTimedOut)
		defer cancel()
	}
	left, told := "", ""
	f := &follow.Follower{Client: client, Namespace: namespace, Name: name, Trouble: func(err error) {
		fmt.Fprintf(o.IO.ErrOut, "note: %s; trying again\n", failure.From(err).Message)
	}}
	err := f.Run(ctx, func(s follow.Snapshot) (bool, error) {
		left = remains(s, uid)
		if left != "" && left != told && told != "" {
			fmt.Fprintf(o.IO.ErrOut, "%s: waiting for %s\n", name, left)
		}
		told = left
		return left == "", nil
	})
	hint := fmt.Sprintf("it goes on in the cluster; see what is left with `kubectl -n %s get tfjobs,pods -l %s`", namespace, tfjob.PodSelectorFor(name))
	switch {
	case errors.Is(context.Cause(ctx), errTimedOut) && errors.Is(err, context.DeadlineExceeded):
		return failure.WithCode(failure.CodeTimedOut, "TFJob %s/%s is deleted, but after %s there is still %s",
			namespace, name, o.Timeout, left).WithHint("%s", hint)
	case errors.Is(err, context.Canceled):
		return failure.WithCode(failure.CodeInterrupted, "interrupted; the deletion of TFJob %s/%s goes on", namespace, name).WithHint("%s", hint)
	}
	return err
}

// remains says what is left of the job, or nothing.
func remains(s follow.Snapshot, uid types.UID) string {
	pods := 0
	for _, pod := range s.Pods {
		if tfjob.Owner(pod) == uid {
			pods++
		}
	}
	switch {
	case s.Job != nil && s.Job.UID == uid:
		return "the job with " + count(pods)
	case pods > 0:
		return count(pods)
	}
	return ""
}

func count(pods int) string {
	if pods == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", pods)
}
