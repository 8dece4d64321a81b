package engine

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/scheduler/outcome"
)

// bindTimeout is how long the API server may take to answer a binding before the pod
// is read.
const bindTimeout = 30 * time.Second

// Results of an unanswered binding: the values of the label result.
const (
	resultBound   = "bound"
	resultUnbound = "unbound"
)

const (
	// mayHurry is how many times a binding that failed is sent before those of others: as often as the engine sends it without a decision in between.
	mayHurry = 4
	// hurryTime is how long a failure is remembered, and maxFailures of how many pods: users make pods.
	hurryTime   = 10 * time.Minute
	maxFailures = 4096
)

// Binder sends the engine's bindings, as [bindingSlots] order them, and determines the outcome of those that were not answered.
//
// The API server may bind a pod and the response get lost: the connection ends,
// the server is too slow, its storage times out. The engine takes that for a
// failure and assigns the node to other pods, also to other members of the gang,
// until a watch shows otherwise, which may be late for the same reason. So the pod
// is read before the engine gets an error, for as long as it takes to get an
// answer. Meanwhile the engine keeps the node. A Binder is safe for concurrent use.
type Binder struct {
	clock      clock.WithDelayedExecution
	timeout    time.Duration
	slots      *bindingSlots
	unanswered *metrics.CounterVec

	mu       sync.Mutex
	failures map[types.UID]bindFailures
	purged   time.Time // when those that are old were forgotten
}

// bindFailures are how often a pod was not bound, and when that was last.
type bindFailures struct {
	times int
	last  time.Time
}

// NewBinder returns a binder.
func NewBinder(c clock.WithDelayedExecution) *Binder {
	return &Binder{clock: c, timeout: bindTimeout, slots: newBindingSlots(c), failures: map[types.UID]bindFailures{}, unanswered: metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "gangctl_scheduler", Name: "unanswered_bindings_total", StabilityLevel: metrics.ALPHA,
		Help: "Bindings that the API server did not confirm, by what was found: bound, or unbound.",
	}, []string{"result"})}
}

// Idle waits until no binding waits to be sent, so that gangs start before their events are written. In a long burst it does
// not wait.
func (b *Binder) Idle(ctx context.Context) { b.slots.awaitIdle(ctx) }

// Busy reports whether bindings wait to be sent. In a long burst that does not count.
func (b *Binder) Busy() bool {
	_, _, busy := b.slots.busy()
	return busy
}

// hurries reports whether a pod's binding failed, and is to be sent before those of others.
func (b *Binder) hurries(pod types.UID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.failures[pod]
	return f.times > 0 && f.times <= mayHurry && b.clock.Since(f.last) < hurryTime
}

// note keeps how often a pod's binding failed in a way that may pass.
func (b *Binder) note(pod types.UID, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !outcome.Transient(err) {
		delete(b.failures, pod)
		return
	}
	now := b.clock.Now()
	if now.Sub(b.purged) > time.Minute { // pods that were deleted since
		b.purged = now
		maps.DeleteFunc(b.failures, func(_ types.UID, f bindFailures) bool { return now.Sub(f.last) > hurryTime })
	}
	if f, known := b.failures[pod]; known || len(b.failures) < maxFailures {
		b.failures[pod] = bindFailures{f.times + 1, now}
	}
}

// Register adds the binder's metrics to a registry.
func (b *Binder) Register(register func(...metrics.Registerable)) { register(b.unanswered) }

// Client wraps a clientset: a binding fails only if the pod was not bound.
func (b *Binder) Client(client kubernetes.Interface) kubernetes.Interface {
	return withPods(client, func(_ string, pods typedcorev1.PodInterface) typedcorev1.PodInterface {
		return &bindPods{PodInterface: pods, binder: b}
	})
}

type bindPods struct {
	typedcorev1.PodInterface
	binder *Binder
}

// Bind implements typedcorev1.PodExpansion.
func (p *bindPods) Bind(ctx context.Context, binding *corev1.Binding, options metav1.CreateOptions) error {
	leave, err := p.binder.slots.enter(ctx, p.binder.hurries(binding.UID))
	if err != nil {
		return err
	}
	err = p.send(ctx, binding, options)
	leave()
	if err != nil && !refused(err) {
		result := resultUnbound
		if p.bound(ctx, binding, err) {
			result, err = resultBound, nil
		}
		p.binder.unanswered.WithLabelValues(result).Inc()
	}
	p.binder.note(binding.UID, err)
	return err
}

// send sends a binding once.
func (p *bindPods) send(ctx context.Context, binding *corev1.Binding, options metav1.CreateOptions) error {
	limited, cancel := context.WithTimeout(ctx, p.binder.timeout)
	defer cancel()
	return p.PodInterface.Bind(limited, binding, options)
}

// refused reports whether the API server answered that it did not bind the pod. A
// conflict may be with a binding of ours that was not answered.
func refused(err error) bool { return outcome.Refused(err) && !apierrors.IsConflict(err) }

// bound reports whether a pod is on the node of its binding. It reads the
// pod until there is an answer or ctx ends.
func (p *bindPods) bound(ctx context.Context, binding *corev1.Binding, cause error) bool {
	pause := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 7, Cap: 5 * time.Second}
	for reads := 0; ; reads++ {
		limited, cancel := context.WithTimeout(ctx, p.binder.timeout)
		pod, err := p.Get(limited, binding.Name, metav1.GetOptions{})
		cancel()
		switch {
		case err == nil:
			return pod.UID == binding.UID && pod.Spec.NodeName == binding.Target.Name
		case refused(err):
			return false
		case reads == 0:
			klog.FromContext(ctx).Info("A binding was not answered; its node is kept until the outcome is known",
				"pod", klog.KRef(binding.Namespace, binding.Name), "node", binding.Target.Name, "cause", cause, "err", err)
		}
		select {
		case <-p.binder.clock.After(pause.Step()):
		case <-ctx.Done():
			return false
		}
	}
}
