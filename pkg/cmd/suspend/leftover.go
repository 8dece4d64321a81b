package suspend

import (
	"context"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/kube"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
)

// leftover refuses to resume a job that still has pods from before: the operator would take those that end for new ones that
// failed, and fail the job.
func leftover(ctx context.Context, client *kube.Client, op failure.Op, job *kubeflowv1.TFJob) error {
	pods, err := client.Typed.CoreV1().Pods(job.Namespace).List(ctx, metav1.ListOptions{LabelSelector: tfjob.PodSelectorFor(job.Name)})
	if err != nil {
		return failure.Op{Verb: "list", Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "pod", Namespace: job.Namespace}.Wrap(err)
	}
	if n := len(tfjob.ByOwner(pods.Items)[job.UID]); n > 0 {
		return failure.Errorf("%s: pods of it that still end: %d; resumed now it would fail", op, n).
			WithHint("try again when they are gone: kubectl -n %s wait --for=delete pod -l %s", job.Namespace, tfjob.PodSelectorFor(job.Name))
	}
	return nil
}
