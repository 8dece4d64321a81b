package kubelet

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
)

// SeenAgainAnnotation of a pod is when it had changed before the kubelet could write what it saw of it (RFC 3339).
const SeenAgainAnnotation = "sandbox.gangctl.dev/seen-again"

// seenOnly is a client for KWOK that changes and deletes pods as they were seen, as a kubelet does. On a busy machine KWOK is late:
// what it deletes or starts by name may be another pod by then, or have started.
type seenOnly struct {
	kubernetes.Interface
	clock clock.PassiveClock
}

// CoreV1 implements kubernetes.Interface.
func (c seenOnly) CoreV1() corev1client.CoreV1Interface {
	return seenCore{c.Interface.CoreV1(), c.clock}
}

type seenCore struct {
	corev1client.CoreV1Interface
	clock clock.PassiveClock
}

// Pods implements corev1client.PodsGetter.
func (c seenCore) Pods(namespace string) corev1client.PodInterface {
	return seenPods{c.CoreV1Interface.Pods(namespace), c.clock}
}

type seenPods struct {
	corev1client.PodInterface
	clock clock.PassiveClock
}

// Patch writes a change. One that was refused because the pod has changed is dropped by KWOK, which may have dropped the newer one in its favour:
// an annotation has it look at the pod again.
func (p seenPods) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (*corev1.Pod, error) {
	pod, err := p.PodInterface.Patch(ctx, name, kind, data, o, subresources...)
	if !apierrors.IsConflict(err) {
		return pod, err
	}
	at := strconv.Quote(p.clock.Now().UTC().Format(time.RFC3339Nano))
	again := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, SeenAgainAnnotation, at)
	if _, failed := p.PodInterface.Patch(ctx, name, types.MergePatchType, again, metav1.PatchOptions{}); failed != nil && !apierrors.IsNotFound(failed) {
		return nil, fmt.Errorf("%w; look at the pod again: %w", err, failed)
	}
	return nil, err
}

// Delete deletes the pod of the name if it is being deleted, by its UID; another one is left alone, without an error: whoever deletes a pod
// without grace can create the next one of its name at once.
func (p seenPods) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
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
