// Package explainer answers why-pending for the gangs that wait, in the
// scheduler, which has most of the cluster in memory anyway, and publishes the
// answers. A later query reads one object instead of every pod.
package explainer

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
)

const (
	// debounce is how long changes of a gang are gathered before anything is
	// computed: a gang that starts within it is never explained.
	debounce = 5 * time.Second
	// share bounds the explainer to one part in share of one core: after a
	// round it sleeps share times as long as the round took.
	share = 20
	// roundBudget is the time after which a round explains no further gang, so
	// that the sleep that follows is short. The rest is for the next round.
	roundBudget = 2 * time.Second
	// refresh is how often a gang that continues to wait is explained again: the reason
	// may have changed without an attempt of its own.
	refresh = 5 * time.Minute
	// renewal is the age at which an answer is published again though it is
	// the same, because API servers forget events after an hour.
	renewal = 30 * time.Minute
	// minInterval is the time between two answers about a gang at least, so that what changes every second
	// is not published every second.
	minInterval = 15 * time.Second
	// adviceBudget is the time to search for advice on one gang.
	adviceBudget = time.Second
)

// Config is what an explainer needs.
type Config struct {
	// Snapshot returns the cluster as it is now.
	Snapshot func(context.Context) (*snapshot.Snapshot, error)
	// Members lists the pods of a gang.
	Members func(gang.Key) []*corev1.Pod
	// Next reports whether a gang waits for nothing but its turn, behind others that are being placed: there is nothing to explain.
	Next func(gang.Key) bool
	// Publish writes an answer about a gang where its users find it.
	Publish func(context.Context, gang.Key, *answer.Answer) error
	// Published reads the answers that another leader or another run published and
	// did not withdraw.
	Published func(context.Context) (map[gang.Key]*answer.Answer, error)
	// Same reports whether two answers are the same.
	Same func(a, b *answer.Answer) bool
	// Names is whether an answer names what is in other namespaces than its gang.
	Names audience.Policy
	Clock clock.WithTicker
	// Panics counts the gangs over whose data the explanation panicked.
	Panics *engine.Panics
}

// Explainer keeps a published answer for every gang that waits.
type Explainer struct {
	Config

	queue *queue
	guard *engine.Guard
	count *metrics.Counter

	// current is touched by Run only.
	current map[gang.Key]publication
}

// publication is the current answer, when it was published, and when it was last
// found to be true.
type publication struct {
	answer          *answer.Answer
	published, seen time.Time
}

// New returns an explainer, which does nothing before [Explainer.Run].
func New(config Config) *Explainer {
	return &Explainer{
		Config: config, queue: newQueue(config.Clock), guard: config.Panics.Guard("explainer"), current: map[gang.Key]publication{},
		count: metrics.NewCounter(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "published_answers_total", StabilityLevel: metrics.ALPHA,
			Help: "Answers to why-pending that were written as events of jobs.",
		}),
	}
}

// Register adds the explainer's metrics to a registry.
func (e *Explainer) Register(register func(...metrics.Registerable)) { register(e.count) }

// Touch marks a gang whose reason to wait may have changed.
func (e *Explainer) Touch(key gang.Key) { e.queue.add(key, debounce) }

// Run works until ctx ends. Only the replica that schedules may run it.
func (e *Explainer) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	ticker := e.Clock.NewTicker(refresh / 5)
	defer ticker.Stop()
	recalled := e.recall(ctx)
	for {
		switch e.await(ctx, ticker) {
		case ended:
			return
		case stale:
			e.touchStale()
			recalled = recalled || e.recall(ctx)
			continue
		case changed:
			continue
		}
		start := e.Clock.Now()
		if err := e.round(ctx); err != nil && ctx.Err() == nil {
			logger.Error(err, "Cannot explain why gangs wait; retrying")
		}
		if !e.sleep(ctx, share*e.Clock.Since(start)) {
			return
		}
	}
}

// occasion is what Run waits for.
type occasion int

const (
	due     occasion = iota // a gang is to be explained
	changed                 // there is a new gang in the queue
	stale                   // answers may have become old
	ended                   // the context has ended
)

// await returns the next occasion.
func (e *Explainer) await(ctx context.Context, ticker clock.Ticker) occasion {
	var timer <-chan time.Time
	if d, ok := e.queue.wait(); ok {
		t := e.Clock.NewTimer(d)
		defer t.Stop()
		timer = t.C()
	}
	select {
	case <-ctx.Done():
		return ended
	case <-e.queue.wake:
		return changed
	case <-ticker.C():
		return stale
	case <-timer:
		return due
	}
}

// recall adopts the answers that were published before: those that are still true are
// not published again, and the others are withdrawn. It reports whether that is done:
// without the right to read them they remain until they expire.
func (e *Explainer) recall(ctx context.Context) bool {
	known, err := e.Published(ctx)
	if apierrors.IsForbidden(err) {
		klog.FromContext(ctx).Info("Cannot determine which answers an earlier scheduler published; they remain until they expire", "err", err)
		return true
	}
	if err != nil {
		if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot determine which published answers to withdraw; retrying")
		}
		return false
	}
	for key, a := range known {
		if _, adopted := e.current[key]; !adopted {
			e.current[key] = publication{answer: a, published: *a.Snapshot.At, seen: *a.Snapshot.At}
			e.Touch(key)
		}
	}
	return true
}

// sleep reports whether it slept for d, and ctx did not end.
func (e *Explainer) sleep(ctx context.Context, d time.Duration) bool {
	timer := e.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

// touchStale marks the gangs that were not explained for the refresh interval.
func (e *Explainer) touchStale() {
	now := e.Clock.Now()
	for key, s := range e.current {
		if now.Sub(s.seen) >= refresh {
			e.Touch(key)
		}
	}
}

// round explains the gangs that are due: it withdraws answers first, which costs little, and then explains as many as its budget
// allows, those first that are due for longest. Gangs for which that failed are tried again later.
func (e *Explainer) round(ctx context.Context) error {
	start := e.Clock.Now()
	var waits []entry
	var queries []diagnose.Query
	var failed []error
	for _, due := range e.queue.take() {
		if e.Next(due.key) {
			e.queue.putBack(due, debounce)
		} else if pod := waiting(e.Members(due.key)); pod != nil {
			waits, queries = append(waits, due), append(queries, diagnose.Query{Kind: "pod", Namespace: pod.Namespace, Name: pod.Name})
		} else if _, known := e.current[due.key]; known {
			failed = append(failed, e.settle(ctx, due.key, func() error { return e.withdraw(ctx, due.key) }))
		}
	}
	if len(waits) == 0 {
		return errors.Join(failed...)
	}
	s, err := e.Snapshot(ctx)
	if err != nil {
		for _, w := range waits {
			e.queue.putBack(w, debounce)
		}
		return errors.Join(append(failed, err)...)
	}
	explainer := diagnose.NewExplainer(s)
	for i, w := range waits {
		if i > 0 && e.Clock.Since(start) > roundBudget {
			e.queue.putBack(w, 0)
			continue
		}
		failed = append(failed, e.settle(ctx, w.key, func() error { return e.answer(ctx, explainer, w.key, queries[i]) }))
	}
	return errors.Join(failed...)
}

// settle does the work for one gang. What a tenant wrote may make it fail, or even panic: then this gang is tried again later, and less
// often each time, and all others go on.
func (e *Explainer) settle(ctx context.Context, key gang.Key, work func() error) error {
	done, err := e.guard.Do(klog.FromContext(ctx), key.String(), func() string { return engine.VersionOf(e.Members(key)...) }, work)
	if !done || err != nil {
		e.queue.failed(key)
	} else {
		e.queue.succeeded(key)
	}
	return err
}

// withdraw replaces the answer about a gang that does not wait any more.
func (e *Explainer) withdraw(ctx context.Context, key gang.Key) error {
	if err := e.Publish(ctx, key, withdrawn(e.current[key].answer, e.Clock.Now())); err != nil {
		return err
	}
	delete(e.current, key)
	return nil
}

// answer explains one gang that waits, and publishes a new answer.
func (e *Explainer) answer(ctx context.Context, explainer *diagnose.Explainer, key gang.Key, q diagnose.Query) error {
	last, known := e.current[key]
	a, err := explainer.Explain(ctx, q, diagnose.Options{AdviceBudget: adviceBudget, Reader: e.Names.Reader(key.Namespace)})
	var gone *gang.JobNotFoundError
	if errors.As(err, &gone) {
		return nil // deleted since; its next event comes
	} else if err != nil {
		return err
	}
	now := e.Clock.Now()
	if known && e.Same(last.answer, a) && now.Sub(last.published) < renewal {
		last.seen = now
		e.current[key] = last
		return nil
	}
	if left := minInterval - now.Sub(last.published); known && left > 0 {
		e.queue.add(key, left)
		return nil
	}
	if err := e.Publish(ctx, key, a); err != nil {
		return err
	}
	e.count.Inc()
	e.current[key] = publication{answer: a, published: now, seen: now}
	return nil
}

// waiting returns a member that has no node, the first by name; nil where all have
// one.
func waiting(members []*corev1.Pod) *corev1.Pod {
	var first *corev1.Pod
	for _, pod := range members {
		open := pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending
		if open && (first == nil || pod.Name < first.Name) {
			first = pod
		}
	}
	return first
}

// withdrawn returns the answer for a gang that was explained and does not wait any
// more.
func withdrawn(last *answer.Answer, now time.Time) *answer.Answer {
	return &answer.Answer{
		APIVersion: last.APIVersion, Job: last.Job, Verdict: answer.Running, Who: answer.Nobody,
		Headline: last.Job.Name + ": no member waits for a place any more", AlsoBlocking: []answer.Finding{},
		Stages: []answer.StageState{}, Gang: answer.Gang{Roles: []answer.Role{}}, Unblock: []answer.Action{},
		Confidence: answer.Confidence{Level: answer.Proven, Unmodelled: []string{}, MissingPermissions: []string{}},
		Snapshot:   answer.SnapshotStamp{At: &now},
	}
}
