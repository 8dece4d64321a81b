// Package explainer answers why-pending for the gangs that wait, in the
// scheduler, which has most of the cluster in memory anyway, and publishes the
// answers. A later query reads one object instead of every pod.
package explainer

import (
	"cmp"
	"context"
	"errors"
	"slices"
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

// sight is one look at the cluster.
type sight struct {
	*diagnose.Explainer
	version string
	at      time.Time
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

// round explains gangs that are due for as long as the pace allows: it withdraws answers first, which costs little and needs no rest, and
// then explains those that are due for longest. The others are for later rounds, and so are gangs for which that failed.
func (e *Explainer) round(ctx context.Context) error {
	waits, failed := e.takeDue(ctx)
	if len(waits) == 0 {
		e.forget()
		return errors.Join(failed...)
	}
	if rest := e.pace.until(e.least(waits[0])); rest > 0 {
		for _, w := range waits {
			e.queue.putBack(w.entry, rest)
		}
		return errors.Join(failed...)
	}
	before := e.sight
	if err := e.refresh(ctx, waits[0]); err != nil {
		for _, w := range waits {
			e.queue.putBack(w.entry, debounce)
		}
		return errors.Join(append(failed, err)...)
	}
	for i, w := range waits {
		if w.since.After(e.sight.at) || (i > 0 || w.advice) && e.pace.left() < w.needs() {
			e.queue.putBack(w.entry, e.pace.until(w.needs()))
			continue
		}
		if last, known := e.current[w.key]; known {
			if left := restOf(last.cost) - e.Clock.Since(last.ended); left > 0 {
				e.queue.putBack(w.entry, left)
				continue
			}
		}
		few := len(waits)-i <= withAdvice
		took := e.measure(func() {
			failed = append(failed, e.process(ctx, w.key, func() error { return e.answer(ctx, w, few) }))
		})
		if e.sight != before { // the first answer finds out what the others have in common with it
			e.first, before = took, e.sight
		}
		e.spent[w.key.Namespace] += took
		if p, known := e.current[w.key]; known {
			p.cost, p.ended = took, e.Clock.Now()
			e.current[w.key] = p
		}
	}
	return errors.Join(failed...)
}

// measure does work, and counts it.
func (e *Explainer) measure(work func()) time.Duration {
	took := e.pace.measure(work)
	e.work.Add(took.Seconds())
	return took
}

// wait is a gang that is due, and the query about it.
type wait struct {
	entry
	query diagnose.Query
}

// needs is how much work the gang is, at most where it is that of a search.
func (w wait) needs() time.Duration {
	if w.advice {
		return adviceBudget
	}
	return 0
}

// takeDue takes the gangs that are due, and returns those that wait: the answers about others are withdrawn, and those that are next are
// left for later. Namespaces take turns by what their answers took, so that one whose gangs take long does not keep the others' waiting.
func (e *Explainer) takeDue(ctx context.Context) (waits []wait, failed []error) {
	for _, due := range e.queue.take() {
		if e.Next(due.key) {
			e.queue.putBack(due, debounce)
		} else if pod := waiting(e.Members(due.key)); pod != nil {
			waits = append(waits, wait{due, diagnose.Query{Kind: "pod", Namespace: pod.Namespace, Name: pod.Name}})
		} else if _, known := e.current[due.key]; known {
			failed = append(failed, e.process(ctx, due.key, func() error { return e.withdraw(ctx, due.key) }))
		} else {
			e.queue.succeeded(due.key) // it has no answer, and needs none
		}
	}
	slices.SortStableFunc(waits, func(a, b wait) int {
		return cmp.Or(cmp.Compare(e.rank(a), e.rank(b)), cmp.Compare(e.spent[a.key.Namespace]/chunk, e.spent[b.key.Namespace]/chunk))
	})
	return waits, failed
}

// rank brings cheap answers to the front, then those that took long the last time, then advice.
func (e *Explainer) rank(w wait) int {
	switch {
	case w.advice:
		return 2
	case e.current[w.key].took > chunk:
		return 1
	}
	return 0
}

// least is how much work a round is at least: more where it begins with a look at the cluster, by what the last one and the answer after it took, and some
// more, as garbage is collected now and then.
func (e *Explainer) least(first wait) time.Duration {
	if e.sees(first) {
		return max(chunk, first.needs())
	}
	return min(e.looked+e.first+chunk, allowance)
}

// sees reports whether what was seen last of the cluster is good enough to explain a gang by.
func (e *Explainer) sees(first wait) bool {
	return e.sight != nil && e.Clock.Since(e.sight.at) < sightFor && !first.since.After(e.sight.at)
}

// refresh looks at the cluster again, where that is due.
func (e *Explainer) refresh(ctx context.Context, first wait) error {
	if e.sees(first) {
		return nil
	}
	e.forget() // before the next one is in memory
	var err error
	e.looked = e.measure(func() {
		seen := sight{version: e.Version(), at: e.Clock.Now()}
		var s *snapshot.Snapshot
		if s, err = e.Snapshot(ctx); err == nil {
			seen.Explainer = diagnose.ExplainerAfter(e.known, s)
			seen.Prepare()
			e.sight, e.known = &seen, view.Known{}
		}
	})
	return err
}

// forget gives up the look at the cluster. What is known of it is kept for the next one.
func (e *Explainer) forget() {
	if e.sight != nil {
		e.sight, e.known = nil, e.sight.Known()
	}
}

// restIfIdle gives up what is known of the cluster, and what it is read from, once no gang has waited for a while.
func (e *Explainer) restIfIdle() {
	now := e.Clock.Now()
	switch {
	case e.queue.len() > 0 || len(e.current) > 0 || e.sight != nil:
		e.busy = now
	case !e.busy.IsZero() && now.Sub(e.busy) > restAfter:
		e.busy, e.known = time.Time{}, view.Known{}
		e.Rest()
	}
}

// process does the work for one gang. What a tenant wrote may make it fail, or even panic: then this gang is tried again later, and less
// often each time, and all others go on.
func (e *Explainer) process(ctx context.Context, key gang.Key, work func() error) error {
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

// answer explains one gang that waits, and publishes a new answer. Advice is searched for at once where only few gangs are due, and later
// where it would keep others waiting for their answers.
func (e *Explainer) answer(ctx context.Context, w wait, few bool) error {
	last, known := e.current[w.key]
	if left := minInterval - e.Clock.Since(last.published); known && left > 0 { // nothing could be published now
		e.queue.putBack(w.entry, left)
		return nil
	}
	search := w.advice || few && e.pace.left() >= adviceBudget
	start := e.Clock.Now()
	a, err := e.explain(ctx, w, search)
	if w.touched.After(e.sight.at) {
		e.queue.add(w.key, debounce)
	}
	if a == nil {
		return err
	}
	candidate := a
	if !search {
		candidate = advisedAs(a, last.answer)
	}
	same := known && e.Same(last.answer, candidate)
	now := e.Clock.Now()
	next := publication{answer: a, version: e.sight.version, published: now, seen: e.sight.at, holds: e.sight.at, took: now.Sub(start)}
	switch {
	case search:
		next.advised, next.took = now, last.took
	case same:
		next.answer, next.advised = candidate, last.advised
	}
	if now.Sub(next.advised) >= adviceAge && next.took <= chunk { // advice tries the same many times
		e.queue.addAdvice(w.key, e.sight.at, minInterval)
	}
	if same && now.Sub(last.published) < renewal {
		next.published = last.published
		e.current[w.key] = next
		return nil
	}
	if err := e.Publish(ctx, w.key, next.answer); err != nil {
		return err
	}
	e.count.Inc()
	e.current[w.key] = next
	return nil
}

// explain returns the answer about a gang; nil where it was not there when the cluster was looked at.
func (e *Explainer) explain(ctx context.Context, w wait, search bool) (*answer.Answer, error) {
	o := diagnose.Options{AdviceBudget: noAdvice, Nodes: diagnose.NodeSums, Reader: e.Names.Reader(w.key.Namespace), Clock: e.Clock.Now}
	if search {
		o.AdviceBudget = adviceBudget
	}
	ctx, cancel := context.WithTimeout(ctx, answerBudget+o.AdviceBudget)
	defer cancel()
	a, err := e.sight.Explain(ctx, w.query, o)
	var gone *gang.JobNotFoundError
	if errors.As(err, &gone) {
		return nil, nil
	}
	return a, err
}

// advisedAs is an answer with the advice of another; it is the answer itself where there is none.
func advisedAs(a, last *answer.Answer) *answer.Answer {
	if last == nil {
		return a
	}
	advised := *a
	advised.Unblock, advised.Cut = last.Unblock, last.Cut
	return &advised
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
