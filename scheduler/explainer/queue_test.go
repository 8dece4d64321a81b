package explainer

import (
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
