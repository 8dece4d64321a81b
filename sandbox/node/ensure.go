package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Ensure creates the nodes that are missing and gives those that are there the
// size that is asked for. Other nodes are left alone.
func Ensure(ctx context.Context, client kubernetes.Interface, nodes []*corev1.Node) error {
	for _, want := range nodes {
		_, err := client.CoreV1().Nodes().Create(ctx, want, metav1.CreateOptions{})
		if err == nil {
			continue
		}
		if !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create node %s: %w", want.Name, err)
		}
		have, err := client.CoreV1().Nodes().Get(ctx, want.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("get node %s: %w", want.Name, err)
		}
		if apiequality.Semantic.DeepEqual(have.Status.Capacity, want.Status.Capacity) &&
			apiequality.Semantic.DeepEqual(have.Status.Allocatable, want.Status.Allocatable) {
			continue
		}
		have.Status.Capacity, have.Status.Allocatable = want.Status.Capacity, want.Status.Allocatable
		if _, err := client.CoreV1().Nodes().UpdateStatus(ctx, have, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("resize node %s: %w", want.Name, err)
		}
	}
	return nil
}
