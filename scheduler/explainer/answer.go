package explainer

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/engine"
)

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
		if gang.AwaitsNode(pod) && (first == nil || pod.Name < first.Name) {
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
