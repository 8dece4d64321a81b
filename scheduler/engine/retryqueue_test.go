package engine

import (
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
	q := NewRetryQueue[string]()
	defer q.ShutDown()
	start := time.Now()
	q.AddRateLimited("a")
	if item, _ := q.Get(); item != "a" || time.Since(start) < minRetryDelay {
		t.Errorf("%q after %s, want a after %s", item, time.Since(start), minRetryDelay)
	}
}
