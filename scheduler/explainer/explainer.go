// Package explainer answers why-pending for the gangs that wait, in the
// scheduler, which has most of the cluster in memory anyway, and publishes the
// answers. A later query reads one object instead of every pod.
package explainer

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
)

const (
	// debounce is how long changes of a gang are gathered before anything is
	// computed: a gang that starts within it is never explained.
	debounce = 5 * time.Second
	// chunk is how much work a round does at least, so that rounds are not more than what they find to do.
	chunk = allowance / 4
	// oldest is the age of an answer at most, where nodes or pods have changed since: the reason may have changed without an attempt of the
	// gang's own. A gang is explained again in time for that, refresh after it was at the latest. Where none has changed, what else counts is
	// looked at after recheck. Ages are looked at every tick.
	oldest  = time.Minute
	refresh = 45 * time.Second
	recheck = 5 * time.Minute
	tick    = 5 * time.Second
	// restAfter is how long no gang has waited when the cluster is no longer followed. Where gangs wait now and then, all of it would be read each time.
	restAfter = 5 * time.Minute
	// sightFor is how long gangs are explained by one look at the cluster. A look costs more than hundreds of answers.
	sightFor = time.Minute
	// renewal is the age at which an answer is published again though it is
	// the same, because API servers forget events after an hour.
	renewal = 30 * time.Minute
	// minInterval is the time between two answers about a gang at least, so that what changes every second
	// is not published every second.
	minInterval = 15 * time.Second
	// answerBudget is how long an answer may take, advice aside. What is not found by then is unproven: claims of devices, which users write,
	// may take indefinitely.
	answerBudget = allowance / 2
	// adviceBudget is the time to search for advice on one gang, and noAdvice is no time for it: the answer reports what was not searched.
	adviceBudget = 300 * time.Millisecond
	noAdvice     = time.Nanosecond
	// withAdvice is how many gangs are explained with advice at once.
	withAdvice = 3
	// adviceAge is the age at which advice is searched for again though the reason is the same.
	adviceAge = recheck
)

// Config has the dependencies of an explainer.
type Config struct {
	// Snapshot returns the cluster as it is now. Rest gives up what that is read from, where no gang has waited for long.
	Snapshot func(context.Context) (*snapshot.Snapshot, error)
	Rest     func()
	// Version changes with every change of a node or a pod.
	Version func() string
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
	// CPU is the processor time that the process has used; [Used] is it.
	CPU func() time.Duration
	// Panics counts the gangs over whose data the explanation panicked.
	Panics *engine.Panics
}

// Explainer keeps a published answer for every gang that waits.
type Explainer struct {
	Config

	queue *queue
	guard *engine.Guard
	count *metrics.Counter
	left  *metrics.Gauge
	age   *metrics.Gauge
	work  *metrics.Counter

	// What follows is touched by Run only.
	pace    *pace
	sight   *sight     // the look at the cluster by which gangs are being explained; nil while there are none
	known   view.Known // of the last look, while there is none
	busy    time.Time  // when a gang waited last, until what is known is given up
	current map[gang.Key]publication
	spent   map[string]time.Duration // what the answers of a namespace took lately
	looked  time.Duration            // what the last look took
	first   time.Duration            // what the first answer after it took
}

// publication is the current answer and the version of the cluster that it is about; when it was published, when it was last found to be
// true, until when nothing has changed since, and when its advice was searched for.
type publication struct {
	answer                          *answer.Answer
	version                         string
	published, seen, holds, advised time.Time
	took                            time.Duration // to find the answer, advice aside
	cost                            time.Duration // of the last work on the gang, with its advice and what was published
	ended                           time.Time     // when that was done
}

// New returns an explainer, which does nothing before [Explainer.Run].
func New(config Config) *Explainer {
	return &Explainer{
		Config: config, queue: newQueue(config.Clock), guard: config.Panics.Guard("explainer"), current: map[gang.Key]publication{}, spent: map[string]time.Duration{},
		pace: &pace{clock: config.Clock, cpu: config.CPU},
		count: metrics.NewCounter(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "published_answers_total", StabilityLevel: metrics.ALPHA,
			Help: "Answers to why-pending that were written as events of jobs.",
		}),
		left: metrics.NewGauge(&metrics.GaugeOpts{
			Subsystem: "gangctl_scheduler", Name: "gangs_to_explain", StabilityLevel: metrics.ALPHA,
			Help: "Gangs that the explainer has still to look at, for the first time or again.",
		}),
		age: metrics.NewGauge(&metrics.GaugeOpts{
			Subsystem: "gangctl_scheduler", Name: "oldest_answer_seconds", StabilityLevel: metrics.ALPHA,
			Help: "How long ago the oldest of the published answers was last found to be true, where nodes or pods have changed since.",
		}),
		work: metrics.NewCounter(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "explaining_seconds_total", StabilityLevel: metrics.ALPHA,
			Help: "Time for which the explainer has worked, as it is counted for the share of a core that it may use: without what it takes to follow the cluster.",
		}),
	}
}

// Register adds the explainer's metrics to a registry.
func (e *Explainer) Register(register func(...metrics.Registerable)) {
	register(e.count, e.left, e.age, e.work)
}

// Touch marks a gang whose reason to wait may have changed.
func (e *Explainer) Touch(key gang.Key) { e.queue.add(key, debounce) }

// Run works until ctx ends. Only the replica that schedules may run it.
func (e *Explainer) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	defer e.Rest()
	ticker := e.Clock.NewTicker(tick)
	defer ticker.Stop()
	recalled := e.recall(ctx)
	for {
		e.left.Set(float64(e.queue.len()))
		switch e.await(ctx, ticker) {
		case ended:
			return
		case stale:
			e.touchStale()
			e.forgive()
			e.restIfIdle()
			recalled = recalled || e.recall(ctx)
			continue
		case changed:
			continue
		}
		if err := e.round(ctx); err != nil && ctx.Err() == nil {
			logger.Error(err, "Cannot explain why gangs wait; retrying")
		}
	}
}

// occasion is the event that Run waits for.
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
			at := *a.Snapshot.At
			e.current[key] = publication{answer: a, published: at, seen: at, holds: at}
			e.Touch(key)
		}
	}
	return true
}

// forgive takes a fifth off what namespaces have spent.
func (e *Explainer) forgive() {
	for namespace, spent := range e.spent {
		if e.spent[namespace] = spent * 4 / 5; spent < time.Millisecond {
			delete(e.spent, namespace)
		}
	}
}

// touchStale marks the gangs whose answers may have become wrong though nothing happened to them. Where one is old, all are looked at again
// that are not new: one look at the cluster serves them all.
func (e *Explainer) touchStale() {
	now, version := e.Clock.Now(), e.Version()
	var most time.Duration
	for key, p := range e.current {
		if p.version == version {
			p.holds = now
			e.current[key] = p
		}
		most = max(most, now.Sub(p.holds))
	}
	e.age.Set(most.Seconds())
	old := most >= e.again()
	for key, p := range e.current {
		if old && now.Sub(p.holds) >= minInterval || now.Sub(p.seen) >= recheck {
			e.queue.addStale(key)
		}
	}
}

// again is the age from which a gang is explained again. The more there is to explain, the earlier that begins: the pace spreads it over time,
// and the last answer is not to become too old before its turn comes.
func (e *Explainer) again() time.Duration {
	work := e.looked
	for _, p := range e.current {
		work += p.took
	}
	return max(0, min(refresh, oldest-tick-window-spread(work)))
}
