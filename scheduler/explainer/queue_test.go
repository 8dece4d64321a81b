package explainer

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Of the gangs that come while one waits for those that are due, only one that is due before them wakes it.
func TestOnlyTheFirstWakes(t *testing.T) {
	q := newQueue(clocktesting.NewFakeClock(time.Unix(0, 0)))
	woken := func() bool {
		select {
		case <-q.wake:
			return true
		default:
			return false
		}
	}
	key := func(name string) gang.Key { return gang.Key{Namespace: "research", Name: name} }
	q.wait()
	for _, c := range []struct {
		name  string
		after time.Duration
		wakes bool
	}{{"a", 10 * time.Second, true}, {"b", 10 * time.Second, false}, {"c", 20 * time.Second, false}, {"d", 5 * time.Second, true}} {
		q.add(key(c.name), c.after)
		if got := woken(); got != c.wakes {
			t.Errorf("%s: it wakes: %t", c.name, got)
		}
		q.wait()
	}
}

// Whatever is added, put back and taken in whatever order: those that are due come, in the order in which they wait, and the next is known.
func TestTheQueueIsInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	q, all, taken := newQueue(clock), map[gang.Key]entry{}, 0
	for range 20_000 {
		key, after := gang.Key{Namespace: "research", Name: fmt.Sprint(r.IntN(30))}, time.Duration(r.IntN(10))*time.Second
		e, known := all[key]
		switch now := clock.Now(); r.IntN(5) {
		case 0:
			q.add(key, after)
			if !known || e.advice {
				all[key] = entry{key: key, since: now, touched: now, due: now.Add(after)}
			}
		case 1:
			q.addAdvice(key, now, after)
			if !known {
				all[key] = entry{key: key, since: now, touched: now, due: now.Add(after), advice: true}
			}
		case 2:
			if known {
				q.putBack(e, after)
				e.due, e.advice = now.Add(after), false
				all[key] = e
			}
		case 3:
			clock.Step(time.Duration(r.IntN(3)) * time.Second)
		default:
			for _, e := range q.take() {
				if want, known := all[e.key]; !known || !want.due.Equal(e.due) || e.due.After(now) {
					t.Fatalf("%v was taken, and not %v", e, want)
				}
				delete(all, e.key)
				taken++
			}
			var first time.Time
			for key, e := range all {
				if !e.due.After(now) {
					t.Fatalf("%s is due, and was not taken", key)
				}
				if first.IsZero() || e.due.Before(first) {
					first = e.due
				}
			}
			if wait, ok := q.wait(); ok != (len(all) > 0) || ok && wait != first.Sub(now) {
				t.Fatalf("it waits for %s, and not until %s", wait, first)
			}
		}
	}
	if taken < 1000 {
		t.Errorf("%d were taken", taken)
	}
}
