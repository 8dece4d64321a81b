package engine

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// slots is how many bindings are under way at once. With more of them the API server answers none sooner, and the last
	// member of a gang would be bound seconds after its first.
	slots = 16
	// slotTime is how long a binding occupies a slot. One that takes longer, because of a webhook or an outage, does not count
	// any more.
	slotTime = time.Second
	// priorityTime is how long, in a burst, bindings come before events and statuses: as long as an autoscaler takes between two looks at the pods
	// that wait. burstGap is the pause that ends a burst.
	priorityTime = 10 * time.Second
	burstGap     = time.Second
)

// Binder sends the engine's bindings in the order of their requests, and determines the outcome of those that were not
// answered.
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
	slots      *semaphore.Weighted
	unanswered *metrics.CounterVec

	mu      sync.Mutex
	waiting int           // bindings without a slot
	began   time.Time     // when the burst began in which they wait
	ended   time.Time     // when none was waiting any more
	idle    chan struct{} // closed when none is waiting any more
}

// NewBinder returns a binder.
func NewBinder(c clock.WithDelayedExecution) *Binder {
	return &Binder{clock: c, timeout: bindTimeout, slots: semaphore.NewWeighted(slots), unanswered: metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "gangctl_scheduler", Name: "unanswered_bindings_total", StabilityLevel: metrics.ALPHA,
		Help: "Bindings that the API server did not confirm, by what was found: bound, or unbound.",
	}, []string{"result"})}
}

// enter waits for a slot. The slot is free again when leave is called, or after slotTime.
func (b *Binder) enter(ctx context.Context) (leave func(), err error) {
	if !b.slots.TryAcquire(1) {
		b.wait()
		err := b.slots.Acquire(ctx, 1)
		b.waited()
		if err != nil {
			return nil, err
		}
	}
	release := sync.OnceFunc(func() { b.slots.Release(1) })
	timer := b.clock.AfterFunc(slotTime, release)
	return func() {
		timer.Stop()
		release()
	}, nil
}

func (b *Binder) wait() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting++; b.waiting > 1 {
		return
	}
	b.idle = make(chan struct{})
	if b.clock.Since(b.ended) > burstGap {
		b.began = b.clock.Now()
	}
}

func (b *Binder) waited() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting--; b.waiting == 0 {
		b.ended = b.clock.Now()
		close(b.idle)
	}
}

// Idle waits until no binding waits for a slot, so that gangs start before their events are written. In a long burst it does
// not wait.
func (b *Binder) Idle(ctx context.Context) {
	b.mu.Lock()
	idle, left := b.idle, priorityTime-b.clock.Since(b.began)
	busy := b.waiting > 0 && left > 0
	b.mu.Unlock()
	if !busy {
		return
	}
	timer := b.clock.NewTimer(left)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C():
	case <-ctx.Done():
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
	leave, err := p.binder.enter(ctx)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, p.binder.timeout)
	defer cancel()
	err = p.PodInterface.Bind(limited, binding, options)
	leave()
	if err == nil || refused(err) {
		return err
	}
	if !p.bound(ctx, binding, err) {
		p.binder.unanswered.WithLabelValues(resultUnbound).Inc()
		return err
	}
	p.binder.unanswered.WithLabelValues(resultBound).Inc()
	return nil
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
