package delete

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/watch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
)

// errTimedOut is why the context of a wait ended.
var errTimedOut = errors.New("timed out")

// waitGone returns when neither the job of the uid nor any pod of it is left. Only then are its resources free.
func (o *Options) waitGone(ctx context.Context, client *kube.Client, job *gang.Job, known []*corev1.Pod) error {
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, errTimedOut)
		defer cancel()
	}
	seen, left, reported, there := false, "", "", true
	f := &watch.Follower{Client: client, Job: job, Known: known, Trouble: func(err error) {
		fmt.Fprintf(o.IO.ErrOut, "note: %s; trying again\n", failure.From(err).Message)
	}}
	err := f.Run(ctx, func(s watch.Snapshot) (bool, error) {
		if s.Job != nil && s.Job.Meta.UID == job.Meta.UID {
			job.MadeAs = cmp.Or(s.Job.MadeAs, job.MadeAs) // a RayCluster may have got its name after the job was read
		}
		seen, left = true, remains(s, job)
		there = s.Job != nil && s.Job.Meta.UID == job.Meta.UID
		if left != "" && left != reported && reported != "" {
			fmt.Fprintf(o.IO.ErrOut, "%s: waiting for %s\n", job.Meta.Name, left)
		}
		reported = left
		return left == "", nil
	})
	hint := fmt.Sprintf("it goes on in the cluster; see what is left with `kubectl -n %s get pods -l %s`", job.Meta.Namespace, job.PodSelector(known))
	if there { // the labels by which pods are found are not on the job
		hint = fmt.Sprintf("it goes on in the cluster; see what keeps it with `gangctl why-pending %s -n %s`", job.Reader.Argument(job.Meta.Name), job.Meta.Namespace)
	}
	timedOut := errors.Is(context.Cause(ctx), errTimedOut) && errors.Is(err, context.DeadlineExceeded)
	switch {
	case timedOut && !seen:
		return failure.WithCode(failure.CodeTimedOut, "%s is deleted, but in %s the API server has not shown what is left of it", job, o.Timeout).WithHint("%s", hint)
	case timedOut:
		return failure.WithCode(failure.CodeTimedOut, "%s is deleted, but not all of it is gone after %s: %s", job, o.Timeout, left).WithHint("%s", hint)
	case errors.Is(err, context.Canceled):
		return failure.WithCode(failure.CodeInterrupted, "interrupted; the deletion of %s goes on", job).WithHint("%s", hint)
	case err != nil:
		return fmt.Errorf("%s is deleted, but whether its pods are gone is not known: %w", job, failure.From(err))
	}
	return nil
}

// remains reports what is left of the job, or nothing.
func remains(s watch.Snapshot, job *gang.Job) string {
	pods := 0
	for _, pod := range s.Pods {
		if job.Owns(pod) {
			pods++
		}
	}
	switch {
	case s.Job != nil && s.Job.Meta.UID == job.Meta.UID:
		text := "the job with " + phrase.Count(pods, "pod")
		if _, held, waits := strings.Cut(gang.Deletion(s.Job.Meta.Finalizers), ": "); waits {
			text += "; " + held
		}
		return text
	case pods > 0:
		return phrase.Count(pods, "pod")
	}
	return ""
}
