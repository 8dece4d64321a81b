// Package explainer answers why-pending for the gangs that wait, in the
// scheduler, which has most of the cluster in memory anyway, and publishes the
// answers. A later query reads one object instead of every pod.
package explainer

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

const (
	// debounce is how long changes of a gang are gathered before anything is
	// computed: a gang that starts within it is never explained.
	debounce = 5 * time.Second
	// share bounds the explainer to one part in share of one core: after a
	// round it sleeps share times as long as the round took.
	share = 20
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
	// Publish writes an answer about a gang where its users find it.
	Publish func(context.Context, gang.Key, *answer.Answer) error
	// Published reads the answers that another leader or another run published and
	// did not withdraw.
	Published func(context.Context) (map[gang.Key]*answer.Answer, error)
	// Same reports whether two answers say the same.
	Same  func(a, b *answer.Answer) bool
	Clock clock.WithTicker
}

// Explainer keeps a published answer for every gang that waits.
type Explainer struct {
	Config

	mu    sync.Mutex
	dirty map[gang.Key]time.Time // gangs to explain, and since when
	wake  chan struct{}

	// The fields below are touched by Run only.

	current map[gang.Key]publication
	delayed sync.WaitGroup
	count   *metrics.Counter
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
		Config: config, dirty: map[gang.Key]time.Time{}, wake: make(chan struct{}, 1), current: map[gang.Key]publication{},
		count: metrics.NewCounter(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "published_answers_total", StabilityLevel: metrics.ALPHA,
			Help: "Answers to why-pending that were written as events of jobs.",
		}),
	}
}

// Register adds the explainer's metrics to a registry.
func (e *Explainer) Register(register func(...metrics.Registerable)) { register(e.count) }

// Touch marks a gang whose reason to wait may have changed.
func (e *Explainer) Touch(key gang.Key) {
	e.mu.Lock()
	if _, known := e.dirty[key]; !known {
		e.dirty[key] = e.Clock.Now()
	}
	e.mu.Unlock()
	e.awake()
}

func (e *Explainer) awake() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Run works until ctx ends. Only the replica that schedules may run it.
func (e *Explainer) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	defer e.delayed.Wait()
	ticker := e.Clock.NewTicker(refresh / 5)
	defer ticker.Stop()
	recalled := e.recall(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
		case <-ticker.C():
			e.touchStale()
		}
		recalled = recalled || e.recall(ctx)
		if !e.sleep(ctx, debounce) {
			return
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

// take removes the dirty gangs that have been so for the debounce interval. The others
// are left for another round.
func (e *Explainer) take() []gang.Key {
	e.mu.Lock()
	defer e.mu.Unlock()
	var taken []gang.Key
	for key, since := range e.dirty {
		if e.Clock.Since(since) >= debounce {
			taken = append(taken, key)
			delete(e.dirty, key)
		}
	}
	if len(e.dirty) > 0 {
		e.awake()
	}
	return taken
}

// round explains every gang that was touched. Gangs for which that failed are
// touched again.
func (e *Explainer) round(ctx context.Context) error {
	questions := map[gang.Key]diagnose.Query{}
	for _, key := range e.take() {
		if pod := waiting(e.Members(key)); pod != nil {
			questions[key] = diagnose.Query{Kind: "pod", Namespace: pod.Namespace, Name: pod.Name}
		} else if _, known := e.current[key]; known {
			questions[key] = diagnose.Query{}
		}
	}
	if len(questions) == 0 {
		return nil
	}
	s, err := e.Snapshot(ctx)
	if err != nil {
		for key := range questions {
			e.Touch(key)
		}
		return err
	}
	asker := diagnose.NewExplainer(s)
	var failed []error
	for key, q := range questions {
		if err := e.answer(ctx, asker, key, q); err != nil {
			failed = append(failed, err)
			e.Touch(key)
		}
	}
	return errors.Join(failed...)
}

// answer explains one gang and publishes a new answer. The answer about a gang that
// does not wait any more is withdrawn.
func (e *Explainer) answer(ctx context.Context, asker *diagnose.Explainer, key gang.Key, q diagnose.Query) error {
	last, known := e.current[key]
	if q.Name == "" {
		if err := e.Publish(ctx, key, withdrawn(last.answer, e.Clock.Now())); err != nil {
			return err
		}
		delete(e.current, key)
		return nil
	}
	a, err := asker.Explain(ctx, q, diagnose.Options{AdviceBudget: adviceBudget})
	var gone *view.NotFoundError
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
		e.later(ctx, key, left)
		return nil
	}
	if err := e.Publish(ctx, key, a); err != nil {
		return err
	}
	e.count.Inc()
	e.current[key] = publication{answer: a, published: now, seen: now}
	return nil
}

// later touches a gang after a while.
func (e *Explainer) later(ctx context.Context, key gang.Key, after time.Duration) {
	e.delayed.Go(func() {
		if e.sleep(ctx, after) {
			e.Touch(key)
		}
	})
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
