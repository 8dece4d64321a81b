package engine

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// However long it failed, and whoever else did.
func TestWhatFailsIsTriedAgainSoon(t *testing.T) {
	l := retryLimiter[int]()
	for failure := range 100 {
		if after := l.When(0); after > 5*time.Second || failure > 10 && after < time.Second {
			t.Fatalf("failure %d: tried again after %s", failure+1, after)
		}
	}
	for other := range 1000 {
		if after := l.When(other + 1); after > 100*time.Millisecond {
			t.Fatalf("the first failure of the %dth of many: tried again after %s", other+1, after)
		}
	}
	l.Forget(0)
	if after := l.When(0); after > 100*time.Millisecond {
		t.Errorf("after a success: tried again after %s", after)
	}
}

func TestAQueueTriesAgain(t *testing.T) {
	q := NewRetryQueue(strings.ToLower)
	defer q.ShutDown()
	start := time.Now()
	q.AddRateLimited("a")
	if item, _ := q.Get(); item != "a" || time.Since(start) < minRetryDelay {
		t.Errorf("%q after %s, want a after %s", item, time.Since(start), minRetryDelay)
	}
}

// Many items of one namespace delay those of another by one.
func TestNamespacesTakeTurns(t *testing.T) {
	q := NewRetryQueue(func(item string) string { return item[:1] })
	defer q.ShutDown()
	for _, item := range []string{"a1", "a2", "a3", "b1", "a4", "b2", "c1", "a1"} {
		q.Add(item)
	}
	var order []string
	for q.Len() > 0 {
		item, _ := q.Get()
		q.Done(item)
		if order = append(order, item); item == "a2" {
			q.Add("d1")
		}
	}
	if want := []string{"a1", "b1", "c1", "a2", "b2", "a3", "d1", "a4"}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
}

// What is touched again and again comes once, and again when it is touched after it came.
func TestTouchesComeOnce(t *testing.T) {
	q := NewRetryQueue(strings.ToLower)
	defer q.ShutDown()
	next := func(want string) {
		t.Helper()
		item, _ := q.Get()
		if q.Done(item); item != want {
			t.Errorf("%q comes, want %q", item, want)
		}
	}
	for range 3 {
		for range 1000 {
			q.Touch("a", time.Millisecond)
		}
		next("a")
		q.Touch("b", 10*time.Millisecond) // a second "a" would come before
		next("b")
	}
	if len(q.touched) > 0 {
		t.Errorf("kept %v", q.touched)
	}
}
