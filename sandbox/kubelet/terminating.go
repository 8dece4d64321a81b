package kubelet

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// terminatingOnly is a client that deletes pods as a kubelet does: only those that are being deleted, and by their UID. KWOK deletes
// by name. On a busy machine it is late, and the name may be another pod's by then: whoever deletes a pod without grace can create
// the next one of its name at once.
type terminatingOnly struct{ kubernetes.Interface }

// CoreV1 implements kubernetes.Interface.
func (c terminatingOnly) CoreV1() corev1client.CoreV1Interface {
	return terminatingCore{c.Interface.CoreV1()}
}

type terminatingCore struct{ corev1client.CoreV1Interface }

// Pods implements corev1client.PodsGetter.
func (c terminatingCore) Pods(namespace string) corev1client.PodInterface {
	return terminatingPods{c.CoreV1Interface.Pods(namespace)}
}

type terminatingPods struct{ corev1client.PodInterface }

// Delete deletes the pod of the name if it is being deleted; another one is left alone, without an error.
func (p terminatingPods) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	pod, err := p.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get pod %s to delete it: %w", name, err)
	}
	if pod.DeletionTimestamp == nil {
		return nil
	}
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	err = p.PodInterface.Delete(ctx, name, options)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
