package engine

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
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// bindTimeout is how long the API server may take to answer a binding before the pod
// is read.
const bindTimeout = 30 * time.Second

// Results of an unanswered binding: the values of the label result.
const (
	resultBound   = "bound"
	resultUnbound = "unbound"
)

// BindConfirmer finds out the outcome of bindings that were not answered.
//
// The API server may bind a pod and the response get lost: the connection ends,
// the server is too slow, its storage times out. The engine takes that for a
// failure and assigns the node to other pods, also to other members of the gang,
// until a watch shows otherwise, which may be late for the same reason. So before
// the engine is given an error, the pod is read, for as long as it takes to get an
// answer. Meanwhile the engine keeps the node. It is safe for concurrent
// use.
type BindConfirmer struct {
	clock      clock.Clock
	timeout    time.Duration
	unanswered *metrics.CounterVec
}

// NewBindConfirmer returns a confirmer.
func NewBindConfirmer(c clock.Clock) *BindConfirmer {
	return &BindConfirmer{clock: c, timeout: bindTimeout, unanswered: metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "gangctl_scheduler", Name: "unanswered_bindings_total", StabilityLevel: metrics.ALPHA,
		Help: "Bindings of which the API server did not confirm, by what was found: bound, or unbound.",
	}, []string{"result"})}
}

// Register adds the confirmer's metrics to a registry.
func (b *BindConfirmer) Register(register func(...metrics.Registerable)) { register(b.unanswered) }

// Client wraps a clientset: a binding fails only if the pod was not bound.
func (b *BindConfirmer) Client(client kubernetes.Interface) kubernetes.Interface {
	return &bindClientset{Interface: client, confirmer: b}
}

type bindClientset struct {
	kubernetes.Interface
	confirmer *BindConfirmer
}

// CoreV1 implements kubernetes.Interface.
func (c *bindClientset) CoreV1() typedcorev1.CoreV1Interface {
	return &bindCore{CoreV1Interface: c.Interface.CoreV1(), confirmer: c.confirmer}
}

type bindCore struct {
	typedcorev1.CoreV1Interface
	confirmer *BindConfirmer
}

// Pods implements typedcorev1.CoreV1Interface.
func (c *bindCore) Pods(namespace string) typedcorev1.PodInterface {
	return &bindPods{PodInterface: c.CoreV1Interface.Pods(namespace), confirmer: c.confirmer}
}

type bindPods struct {
	typedcorev1.PodInterface
	confirmer *BindConfirmer
}

// Bind implements typedcorev1.PodExpansion.
func (p *bindPods) Bind(ctx context.Context, binding *corev1.Binding, options metav1.CreateOptions) error {
	limited, cancel := context.WithTimeout(ctx, p.confirmer.timeout)
	defer cancel()
	err := p.PodInterface.Bind(limited, binding, options)
	if err == nil || refused(err) {
		return err
	}
	if !p.bound(ctx, binding, err) {
		p.confirmer.unanswered.WithLabelValues(resultUnbound).Inc()
		return err
	}
	p.confirmer.unanswered.WithLabelValues(resultBound).Inc()
	return nil
}

// refused reports whether the API server answered that it did not bind the pod. A
// conflict may be with a binding of ours that was not answered, and after an
// internal error the pod may be bound all the same.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code < http.StatusInternalServerError && code != http.StatusConflict
}

// bound reports whether a pod is on the node of its binding. It reads the
// pod until there is an answer or ctx ends.
func (p *bindPods) bound(ctx context.Context, binding *corev1.Binding, cause error) bool {
	pause := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 7, Cap: 5 * time.Second}
	for reads := 0; ; reads++ {
		limited, cancel := context.WithTimeout(ctx, p.confirmer.timeout)
		pod, err := p.Get(limited, binding.Name, metav1.GetOptions{})
		cancel()
		switch {
		case err == nil:
			return pod.UID == binding.UID && pod.Spec.NodeName == binding.Target.Name
		case refused(err):
			return false
		case reads == 0:
			klog.FromContext(ctx).Info("A binding was not answered; its node is kept until it is known what became of it",
				"pod", klog.KRef(binding.Namespace, binding.Name), "node", binding.Target.Name, "cause", cause, "err", err)
		}
		select {
		case <-p.confirmer.clock.After(pause.Step()):
		case <-ctx.Done():
			return false
		}
	}
}
