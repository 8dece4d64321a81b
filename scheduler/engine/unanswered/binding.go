// Package unanswered finds out what became of a binding that was not answered.
//
// An API server may bind a pod and its answer get lost: the connection ends, the
// server is too slow, what stores its objects is. The engine takes that for a
// failure and gives the place away, to others of the same gang, too, until a
// watch says otherwise, which may be late for the same reason. So before it is
// told of a failure the API server is asked where the pod is, for as long as it
// takes. Meanwhile the engine keeps the place.
package unanswered

import (
	"context"
	"errors"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// answerWithin is how long an API server may take to answer before it is asked
// what became of a binding.
const answerWithin = 30 * time.Second

// Binder sends bindings. It is safe for concurrent use.
type Binder struct {
	clock clock.Clock
	count counters
	limit time.Duration
}

// New returns a binder.
func New(c clock.Clock) *Binder {
	return &Binder{clock: c, count: newCounters(), limit: answerWithin}
}

// Client wraps a clientset: a binding of its pods fails only if the pod was not
// bound.
func (b *Binder) Client(client kubernetes.Interface) kubernetes.Interface {
	return &clientset{Interface: client, binder: b}
}

type clientset struct {
	kubernetes.Interface
	binder *Binder
}

// CoreV1 implements kubernetes.Interface.
func (c *clientset) CoreV1() typedcorev1.CoreV1Interface {
	return &core{CoreV1Interface: c.Interface.CoreV1(), binder: c.binder}
}

type core struct {
	typedcorev1.CoreV1Interface
	binder *Binder
}

// Pods implements typedcorev1.CoreV1Interface.
func (c *core) Pods(namespace string) typedcorev1.PodInterface {
	return &pods{PodInterface: c.CoreV1Interface.Pods(namespace), binder: c.binder}
}

type pods struct {
	typedcorev1.PodInterface
	binder *Binder
}

// Bind implements typedcorev1.PodExpansion.
func (p *pods) Bind(ctx context.Context, binding *corev1.Binding, options metav1.CreateOptions) error {
	limited, cancel := context.WithTimeout(ctx, p.binder.limit)
	defer cancel()
	err := p.PodInterface.Bind(limited, binding, options)
	if err == nil || refused(err) {
		return err
	}
	if !p.bound(ctx, binding, err) {
		p.binder.count.unanswered.WithLabelValues(resultUnbound).Inc()
		return err
	}
	p.binder.count.unanswered.WithLabelValues(resultBound).Inc()
	return nil
}

// refused tells whether an API server said that it did not bind the pod. A
// conflict may be with a binding of ours that was not answered, and of a fault
// of its own a server does not know how far it had come.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code < http.StatusInternalServerError && code != http.StatusConflict
}

// bound asks whether a pod is where it was to be bound to, until there is an
// answer or ctx ends.
func (p *pods) bound(ctx context.Context, binding *corev1.Binding, cause error) bool {
	pause := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 7, Cap: 5 * time.Second}
	for asked := 0; ; asked++ {
		limited, cancel := context.WithTimeout(ctx, p.binder.limit)
		pod, err := p.Get(limited, binding.Name, metav1.GetOptions{})
		cancel()
		switch {
		case err == nil:
			return pod.UID == binding.UID && pod.Spec.NodeName == binding.Target.Name
		case refused(err):
			return false
		case asked == 0:
			klog.FromContext(ctx).Info("A binding was not answered; its node is kept until it is known what became of it",
				"pod", klog.KRef(binding.Namespace, binding.Name), "node", binding.Target.Name, "cause", cause, "err", err)
		}
		select {
		case <-p.binder.clock.After(pause.Step()):
		case <-ctx.Done():
			return false
		}
	}
}
