// Package explainer answers why-pending for the gangs that wait, in the
// scheduler, which has most of the cluster in memory anyway, and publishes the
// answers. Whoever asks afterwards reads one object instead of every pod.
package explainer

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

const (
	// settle is how long changes of a gang are gathered before anything is
	// computed: a gang that starts within it is never explained.
	settle = 5 * time.Second
	// share bounds the explainer to one part in share of one core: after a
	// round it rests share times as long as the round took.
	share = 20
	// refresh is how often a gang that goes on waiting is looked at again, for
	// what keeps it waiting may have changed without an attempt of its own.
	refresh = 5 * time.Minute
	// renewal is the age at which an answer is published again though it says
	// the same, because API servers forget events after an hour.
	renewal = 30 * time.Minute
	// gap is how long an answer stands at least, so that what changes every second
	// is not published every second.
	gap = 15 * time.Second
	// adviceBudget is the time to look for what would help one gang.
	adviceBudget = time.Second
)

// Explainer keeps a published answer for every gang that waits.
type Explainer struct {
	// Snapshot is the cluster as it is now.
	Snapshot func(context.Context) (*snapshot.Snapshot, error)
	// Members lists the pods of a gang.
	Members func(gang.Key) []*corev1.Pod
	// Publish writes an answer about the gang where its users find it.
	Publish func(context.Context, gang.Key, *answer.Answer) error
	// Standing reads the answers that were published before, by another leader or
	// another run, and were not taken back.
	Standing func(context.Context) (map[gang.Key]*answer.Answer, error)
	// Same tells whether an answer says nothing that the other did not.
	Same  func(a, b *answer.Answer) bool
	Clock clock.WithTicker

	mu    sync.Mutex
	dirty map[gang.Key]time.Time // gangs to look at, and since when
	wake  chan struct{}

	// Touched by Run only.
	said  map[gang.Key]statement
	waits sync.WaitGroup
	count counters
}

// statement is the answer that stands, when it was published, and when it was
// last found to be true.
type statement struct {
	answer          *answer.Answer
	published, seen time.Time
}

// Complete readies the explainer. It must be called before any other method.
func (e *Explainer) Complete() *Explainer {
	e.dirty, e.said = map[gang.Key]time.Time{}, map[gang.Key]statement{}
	e.wake = make(chan struct{}, 1)
	e.count = newCounters()
	return e
}

// Touch says that the reason why a gang waits may have changed.
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
	defer e.waits.Wait()
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
		if !e.rest(ctx, settle) {
			return
		}
		start := e.Clock.Now()
		if err := e.round(ctx); err != nil && ctx.Err() == nil {
			logger.Error(err, "Cannot explain why gangs wait; retrying")
		}
		if !e.rest(ctx, share*e.Clock.Since(start)) {
			return
		}
	}
}

// recall goes on with the answers that stand: those that are true still are not
// published again, and those that are not are taken back. It reports whether that is
// settled: without the right to read them they stand until they are too old.
func (e *Explainer) recall(ctx context.Context) bool {
	standing, err := e.Standing(ctx)
	if apierrors.IsForbidden(err) {
		klog.FromContext(ctx).Info("Cannot tell which answers an earlier scheduler published; they stand until they are too old", "err", err)
		return true
	}
	if err != nil {
		if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot tell which published answers to take back; retrying")
		}
		return false
	}
	for key, a := range standing {
		if _, known := e.said[key]; !known {
			e.said[key] = statement{answer: a, published: *a.Snapshot.At, seen: *a.Snapshot.At}
			e.Touch(key)
		}
	}
	return true
}

// rest waits, and reports whether there is work to be done after that.
func (e *Explainer) rest(ctx context.Context, d time.Duration) bool {
	timer := e.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

// touchStale marks the gangs that go on waiting, after a while.
func (e *Explainer) touchStale() {
	now := e.Clock.Now()
	for key, s := range e.said {
		if now.Sub(s.seen) >= refresh {
			e.Touch(key)
		}
	}
}

// take removes from the gangs to look at those that have been among them for long
// enough. The others have their turn in another round.
func (e *Explainer) take() []gang.Key {
	e.mu.Lock()
	defer e.mu.Unlock()
	var taken []gang.Key
	for key, since := range e.dirty {
		if e.Clock.Since(since) >= settle {
			taken = append(taken, key)
			delete(e.dirty, key)
		}
	}
	if len(e.dirty) > 0 {
		e.awake()
	}
	return taken
}

// round answers for every gang that was touched. Gangs for which that failed
// are touched again.
func (e *Explainer) round(ctx context.Context) error {
	questions := map[gang.Key]diagnose.Question{}
	for _, key := range e.take() {
		if pod := waiting(e.Members(key)); pod != nil {
			questions[key] = diagnose.Question{Kind: "pod", Namespace: pod.Namespace, Name: pod.Name}
		} else if _, known := e.said[key]; known {
			questions[key] = diagnose.Question{}
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
	asker := diagnose.NewAsker(s)
	var failed []error
	for key, q := range questions {
		if err := e.answer(ctx, asker, key, q); err != nil {
			failed = append(failed, err)
			e.Touch(key)
		}
	}
	return errors.Join(failed...)
}

// answer explains one gang and publishes what is new. A gang that does not wait
// any more has its answer taken back.
func (e *Explainer) answer(ctx context.Context, asker *diagnose.Asker, key gang.Key, q diagnose.Question) error {
	last, known := e.said[key]
	if q.Name == "" {
		if err := e.Publish(ctx, key, over(last.answer, e.Clock.Now())); err != nil {
			return err
		}
		delete(e.said, key)
		return nil
	}
	a, err := asker.Ask(ctx, q, diagnose.Options{AdviceBudget: adviceBudget})
	var gone *view.NotFoundError
	if errors.As(err, &gone) {
		return nil // deleted since; its next event comes
	} else if err != nil {
		return err
	}
	now := e.Clock.Now()
	if known && e.Same(last.answer, a) && now.Sub(last.published) < renewal {
		last.seen = now
		e.said[key] = last
		return nil
	}
	if left := gap - now.Sub(last.published); known && left > 0 {
		e.later(ctx, key, left)
		return nil
	}
	if err := e.Publish(ctx, key, a); err != nil {
		return err
	}
	e.count.published.Inc()
	e.said[key] = statement{answer: a, published: now, seen: now}
	return nil
}

// later has a gang looked at again.
func (e *Explainer) later(ctx context.Context, key gang.Key, after time.Duration) {
	e.waits.Go(func() {
		if e.rest(ctx, after) {
			e.Touch(key)
		}
	})
}

// waiting returns a member that has no place, the first by name; nil where all
// have one.
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

// over is the answer for a gang that was explained and does not wait any more.
func over(last *answer.Answer, now time.Time) *answer.Answer {
	return &answer.Answer{
		APIVersion: last.APIVersion, Job: last.Job, Verdict: answer.Running, Who: answer.Nobody,
		Headline: last.Job.Name + ": no member waits for a place any more", AlsoBlocking: []answer.Finding{},
		Stages: []answer.StageState{}, Gang: answer.Gang{Roles: []answer.Role{}}, Unblock: []answer.Action{},
		Confidence: answer.Confidence{Level: answer.Proven, Unmodelled: []string{}, MissingPermissions: []string{}},
		Snapshot:   answer.SnapshotStamp{At: &now},
	}
}
