package explainer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose"
)

// sight is one look at the cluster.
type sight struct {
	*diagnose.Explainer
	version string
	at      time.Time
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
