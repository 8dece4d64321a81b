package binding

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func always(string) bool { return true }

func present(types.UID, string) bool { return true }

func TestAttempt(t *testing.T) {
	uids := []types.UID{"a", "b", "c", "d"}
	for _, c := range []struct {
		name     string
		required int
		ready    int // of four members; the others fail
		wantErr  string
	}{
		{"all are ready", 4, 4, ""},
		{"as many as are needed", 2, 2, ""},
		{"one too few", 3, 2, "could not be made ready"},
		{"none is needed any more", 0, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAttempt("ns/g", c.required, func(types.UID, error) {}, always, present)
			for _, uid := range uids {
				a.join(uid, string(uid), "n1", true)
			}
			results := make(chan error, len(uids))
			for _, uid := range uids[:c.ready] {
				go func() { results <- a.wait(t.Context(), uid, time.Minute) }()
			}
			for _, uid := range uids[c.ready:] {
				a.fail(uid)
			}
			for range c.ready {
				if err := <-results; (c.wantErr == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), c.wantErr)) {
					t.Errorf("got %v, want %q", err, c.wantErr)
				}
			}
		})
	}
}

func TestAttemptThatTakesTooLong(t *testing.T) {
	called := map[types.UID]bool{}
	a := newAttempt("ns/g", 3, func(uid types.UID, _ error) { called[uid] = true }, always, present)
	for _, uid := range []types.UID{"a", "b", "c"} {
		a.join(uid, string(uid), "n1", true)
	}
	results := make(chan error, 2)
	go func() { results <- a.wait(t.Context(), "a", time.Hour) }()
	go func() { results <- a.wait(t.Context(), "b", 20*time.Millisecond) }()
	for range 2 {
		if err := <-results; !errors.Is(err, errTimeout) {
			t.Errorf("got %v, want a timeout", err)
		}
	}
	if len(called) != 1 || !called["c"] {
		t.Errorf("cancelled %v, want the one that is not ready", called)
	}
	if err := a.wait(t.Context(), "c", time.Hour); !errors.Is(err, errTimeout) {
		t.Errorf("the last one was let go alone: %v", err)
	}

	a = newAttempt("ns/g", 2, nil, always, present)
	a.join("a", "a", "n1", true)
	a.join("b", "b", "n1", true)
	ctx, cancel := context.WithCancelCause(t.Context())
	preempted := errors.New("preempted")
	cancel(preempted)
	if err := a.wait(ctx, "a", time.Hour); !errors.Is(err, preempted) {
		t.Errorf("got %v, want the reason why it was cancelled", err)
	}
}

// A node goes while one member waits for the other.
func TestANodeThatGoes(t *testing.T) {
	for _, c := range []struct {
		required int
		want     string // for the member that has a node
	}{{2, "member a of gang ns/g was to go to node n1, which is gone, and the gang needs it: no member was bound"}, {1, ""}} {
		var gone atomic.Bool
		a := newAttempt("ns/g", c.required, func(types.UID, error) {}, func(node string) bool { return node != "n1" || !gone.Load() }, present)
		a.join("a", "a", "n1", true)
		a.join("b", "b", "n2", true)
		first := make(chan error, 1)
		if c.required == 2 {
			go func() { first <- a.wait(t.Context(), "a", time.Minute) }()
			for n := 0; n == 0; time.Sleep(time.Millisecond) {
				a.mu.Lock()
				n = a.count(ready)
				a.mu.Unlock()
			}
		}
		gone.Store(true)
		if c.required == 1 {
			first <- a.wait(t.Context(), "a", time.Minute)
		}
		err := a.wait(t.Context(), "b", time.Minute)
		if (c.want == "") != (err == nil) || err != nil && err.Error() != c.want {
			t.Errorf("need %d: the other member gets %v, want %q", c.required, err, c.want)
		}
		if err := <-first; err == nil {
			t.Errorf("need %d: the member was let go to a node that is gone", c.required)
		}
	}
}

func TestWhoWaits(t *testing.T) {
	for _, c := range []struct {
		required int
		prepares bool
		want     bool
	}{{3, true, true}, {3, false, false}, {1, true, false}, {-1, true, false}} {
		a := newAttempt("ns/g", c.required, func(types.UID, error) {}, always, present)
		a.join("a", "a", "n1", false)
		a.join("b", "b", "n1", c.prepares)
		if got := a.mustWait(); got != c.want {
			t.Errorf("required %d, prepares %v: waits is %v", c.required, c.prepares, got)
		}
	}
}

// crew is an attempt of the members a, b, c and x, of which x goes away.
type crew struct {
	*attempt
	t       *testing.T
	gone    []types.UID // by the attempt's lock
	results map[types.UID]chan error
}

func newCrew(t *testing.T, required int) *crew {
	c := &crew{t: t, results: map[types.UID]chan error{}}
	c.attempt = newAttempt("ns/g", required, func(types.UID, error) {}, always, func(uid types.UID, _ string) bool { return !slices.Contains(c.gone, uid) })
	for _, uid := range []types.UID{"a", "b", "c", "x"} {
		c.join(uid, string(uid), "n1", true)
		c.results[uid] = make(chan error, 1)
	}
	return c
}

// arrive has members come one after the other, ready to be bound.
func (c *crew) arrive(uids ...types.UID) {
	for _, uid := range uids {
		go func() { c.results[uid] <- c.wait(c.t.Context(), uid, time.Minute) }()
		for there := false; !there; time.Sleep(time.Millisecond) {
			c.mu.Lock()
			there = c.members[uid].stage >= ready
			c.mu.Unlock()
		}
	}
}

func (c *crew) leave(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = append(c.gone, uid)
}

// want checks what members get: text, or that they may go if it is empty.
func (c *crew) want(text string, uids ...types.UID) {
	c.t.Helper()
	for _, uid := range uids {
		select {
		case err := <-c.results[uid]:
			if (text == "") != (err == nil) || err != nil && !strings.HasSuffix(err.Error(), text) {
				c.t.Errorf("member %s gets %v, want %q", uid, err, text)
			}
		case <-time.After(10 * time.Second):
			c.t.Fatalf("member %s waits on", uid)
		}
	}
}

const noMember = "member x of gang ns/g is gone, and the gang needs it: no member was bound"

func TestAMemberThatIsDeletedWhileItWaits(t *testing.T) {
	c := newCrew(t, 4)
	c.arrive("a", "b", "x")
	c.leave("x")
	c.arrive("c")
	c.want(noMember, "a", "b", "c", "x")

	c = newCrew(t, 3) // the others are enough
	c.arrive("x", "a")
	c.leave("x")
	c.arrive("b")
	c.want("member x of gang ns/g is gone", "x")
	c.arrive("c")
	c.want("", "a", "b", "c")
}

// It was found to be gone before it was ready.
func TestAMemberThatIsGoneDoesNotComeBack(t *testing.T) {
	c := newCrew(t, 3)
	c.leave("x")
	if err := c.complete(); err != nil {
		t.Fatalf("three are enough, and %v", err)
	}
	c.arrive("a", "b", "x")
	c.want("member x of gang ns/g is gone", "x")
	c.arrive("c")
	c.want("", "a", "b", "c")
}

// What happens to those that went does not keep back one that comes after them: it
// makes up for them.
func TestOneThatIsReadyLate(t *testing.T) {
	c := newCrew(t, 3)
	c.arrive("a", "b", "x")
	c.want("", "a", "b", "x")
	c.leave("x")
	c.fail("a")
	c.fail("b")
	c.arrive("c")
	c.want("", "c")
}

// The time of a member may end when the last one has become ready: those that were let through are being bound, and the others must follow.
func TestAnOpenBarrierIsNotAborted(t *testing.T) {
	a := newAttempt("ns/g", 2, func(types.UID, error) {}, always, present)
	for _, uid := range []types.UID{"a", "b"} {
		a.join(uid, string(uid), "n1", true)
	}
	results := make(chan error, 2)
	for _, uid := range []types.UID{"a", "b"} {
		go func() { results <- a.wait(t.Context(), uid, time.Hour) }()
	}
	if err := errors.Join(<-results, <-results); err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	a.abort(errTimeout)
	a.mu.Unlock()
	if err := a.aborted(); err != nil {
		t.Errorf("aborted: %v", err)
	}
}
