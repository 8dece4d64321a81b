package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
)

// errLate is why a wait ended.
var errLate = errors.New("timed out")

// WaitReady returns when the controller has seen the Deployment as it was applied and every replica of it is available. progress is
// called with each step, and with the last lines of a pod's log. If it does not get ready in time, the error has exit code 4 and
// reports what the pods lack.
func WaitReady(ctx context.Context, client kubernetes.Interface, namespace, name string, timeout time.Duration, progress func(string)) error {
	limited, cancel := context.WithTimeoutCause(ctx, timeout, errLate)
	defer cancel()
	op := failure.Op{Verb: "get", Resource: appsv1.SchemeGroupVersion.WithResource("deployments"), Kind: "Deployment", Namespace: namespace, Name: name}
	deployments := client.AppsV1().Deployments(namespace)
	// A watch would retry indefinitely what is refused here.
	if _, err := deployments.Get(limited, name, metav1.GetOptions{}); err != nil {
		return op.Wrap(err)
	}
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	lw := kube.ListWatch(client, deployments, func(o *metav1.ListOptions) { o.FieldSelector = selector })
	last, step := (*appsv1.Deployment)(nil), ""
	_, err := watchtools.UntilWithSync(limited, lw, &appsv1.Deployment{}, nil, func(e watch.Event) (bool, error) {
		d, ok := e.Object.(*appsv1.Deployment)
		if !ok {
			return false, nil
		}
		if e.Type == watch.Deleted {
			return false, failure.Errorf("Deployment %s/%s was deleted while waiting for it", namespace, name)
		}
		last = d
		now, ready := rollout(d)
		if now != step && !ready {
			step = now
			progress(now)
		}
		return ready, nil
	})
	if err != nil && errors.Is(context.Cause(limited), errLate) {
		return notReady(ctx, client, last, op, timeout, step, progress)
	}
	if err != nil && ctx.Err() != nil {
		return failure.WithCode(failure.CodeInterrupted, "interrupted; Deployment %s/%s goes on, and is not ready yet", namespace, name).
			WithHint("see how far it is: kubectl -n %s rollout status deployment/%s", namespace, name)
	}
	return err
}

// rollout reports how far the controller has come with a Deployment.
func rollout(d *appsv1.Deployment) (step string, ready bool) {
	want, s := ptr.Deref(d.Spec.Replicas, 1), d.Status
	switch {
	case s.ObservedGeneration < d.Generation:
		return "the controller has not seen it yet", false
	case s.UpdatedReplicas < want:
		return fmt.Sprintf("%d of %d replicas are of this version", s.UpdatedReplicas, want), false
	case s.Replicas > s.UpdatedReplicas:
		return fmt.Sprintf("%d replicas of the earlier version are still there", s.Replicas-s.UpdatedReplicas), false
	case s.AvailableReplicas < want:
		return fmt.Sprintf("%d of %d replicas are available", s.AvailableReplicas, want), false
	}
	return "", true
}

// notReady reports what kept the Deployment from getting ready, after the last lines that its pod logged.
func notReady(ctx context.Context, client kubernetes.Interface, d *appsv1.Deployment, op failure.Op, timeout time.Duration, step string, progress func(string)) error {
	message := fmt.Sprintf("Deployment %s/%s is not ready after %s", op.Namespace, op.Name, timeout)
	if d == nil {
		return failure.WithCode(failure.CodeTimedOut, "%s: the API server does not report its state", message)
	}
	found := diagnose(ctx, client, d)
	for _, line := range found.log {
		progress("log: " + line)
	}
	return failure.WithCode(failure.CodeTimedOut, "%s: %s", message, cmp.Or(found.why, step)).
		WithHint("%s", cmp.Or(found.hint, fmt.Sprintf("see its pods: kubectl -n %s get pods,events", d.Namespace)))
}
