package logs_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/logs"
)

// hasty is a clock whose pauses are a hundredth of what was requested.
type hasty struct{ clock.RealClock }

func (hasty) After(d time.Duration) <-chan time.Time { return time.After(d / 100) }

func follower(t *testing.T, n *node, streams int, turns bool) (*logs.Follower, *tape) {
	t.Helper()
	client, err := n.Client()
	if err != nil {
		t.Fatal(err)
	}
	tape := &tape{}
	return &logs.Follower{Client: client.Typed, Sink: tape, Clock: hasty{}, MaxStreams: streams, TakeTurns: turns}, tape
}

// finished waits until every reader has ended.
func finished(ctx context.Context, t *testing.T, f *logs.Follower) {
	t.Helper()
	for f.Active() > 0 {
		select {
		case <-f.Ended():
		case err := <-f.Failed():
			t.Fatal(err)
		case <-ctx.Done():
			t.Fatal("the readers do not end")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Whatever breaks, each line comes once: connections in the middle of a line, the API server, and containers that are restarted.
func TestEveryLineOnce(t *testing.T) {
	for _, turns := range []bool{false, true} {
		t.Run(fmt.Sprintf("turns=%v", turns), func(t *testing.T) {
			for seed := range uint64(25) {
				everyLineOnce(t, rand.New(rand.NewPCG(seed, 3)), 3, turns)
			}
			everyLineOnce(t, rand.New(rand.NewPCG(64, 3)), 64, turns)
		})
	}
}

func everyLineOnce(t *testing.T, r *rand.Rand, members int, turns bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	n := newNode(t)
	f, tape := follower(t, n, members, turns)
	var names []string
	for i := range members {
		names = append(names, fmt.Sprintf("w%d", i))
	}
	want := map[string][]string{}
	for i, name := range names {
		n.add(name, name)
		f.Update(ctx, n.member(name, i))
	}
	restarted := map[string]int{}
	for step := range 50 * members {
		i := r.IntN(len(names))
		name := names[i]
		text := fmt.Sprintf("run %d line %d", restarted[name], step)
		n.prints(name, text)
		want[name] = append(want[name], text)
		switch r.IntN(25) {
		case 0:
			n.change(func() { n.broken = 1 + r.IntN(3) })
		case 1:
			n.change(func() { n.down = true })
			time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond)
			n.change(func() { n.down = false })
		case 2:
			// A node keeps two runs of a container: the next restart must find the run before read.
			if !tape.has(ctx, name, want[name][0]) {
				t.Fatal("the first line does not come")
			}
			n.restarts(name, 1)
			restarted[name]++
			f.Update(ctx, n.member(name, i))
			first := fmt.Sprintf("run %d begins", restarted[name])
			n.prints(name, first)
			want[name] = append(want[name], first)
			if !tape.has(ctx, name, first) || !tape.has(ctx, name, text) {
				t.Fatalf("%s: %q or %q does not come: %v", name, first, text, tape.lines[name])
			}
		case 3:
			time.Sleep(time.Millisecond)
		}
	}
	for i, name := range names {
		n.ends(name, 0)
		f.Update(ctx, n.member(name, i))
	}
	finished(ctx, t, f)
	for _, name := range names {
		got := slices.Sorted(slices.Values(tape.lines[name]))
		slices.Sort(want[name])
		if diff := cmp.Diff(want[name], got); diff != "" {
			t.Fatalf("%s: -want +got\n%s", name, diff)
		}
	}
}

// A member that is replaced is read to its end, and so is the one that takes its place.
func TestReplacedMember(t *testing.T) {
	n := newNode(t)
	f, tape := follower(t, n, 3, false)
	n.add("a", "first")
	n.prints("a", "one")
	f.Update(t.Context(), n.member("a", 0))
	if !tape.has(t.Context(), "first", "one") {
		t.Fatal("nothing comes")
	}
	n.change(func() {
		last := n.runs["a"][0]
		last.lines, last.over = append(last.lines, entry{time.Now().UTC(), "two"}), true
		delete(n.pods, "a")
	})
	n.add("a", "second")
	n.prints("a", "three")
	f.Update(t.Context(), n.member("a", 0))
	f.Gone(map[types.UID]bool{"second": true})
	n.ends("a", 3)
	f.Update(t.Context(), n.member("a", 0))
	finished(t.Context(), t, f)
	if diff := cmp.Diff(map[string][]string{"first": {"one", "two"}, "second": {"three"}}, tape.lines); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := cmp.Diff([]string{"[worker-0] exited with code 3"}, tape.notes); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// The lists of a server that has just started may lack pods: that is no reason to end. A pod that is gone is one.
func TestListsMayLack(t *testing.T) {
	n := newNode(t)
	f, tape := follower(t, n, 3, true)
	n.add("a", "a")
	n.prints("a", "one")
	f.Update(t.Context(), n.member("a", 0))
	f.Gone(nil)
	if !tape.has(t.Context(), "a", "one") {
		t.Fatal("nothing comes")
	}
	f.Gone(nil)
	n.prints("a", "two")
	if !tape.has(t.Context(), "a", "two") {
		t.Fatal("it has ended")
	}
	n.change(func() { delete(n.pods, "a") })
	f.Gone(nil)
	finished(t.Context(), t, f)
}

// As many members as there may be share a few connections.
func TestTurnsBoundConnections(t *testing.T) {
	const members, streams = 60, 4
	n := newNode(t)
	f, tape := follower(t, n, streams, true)
	for i := range members {
		name := fmt.Sprintf("w%d", i)
		n.add(name, name)
		n.prints(name, "hello")
		f.Update(t.Context(), n.member(name, i))
	}
	for i := range members {
		name := fmt.Sprintf("w%d", i)
		if !tape.has(t.Context(), name, "hello") {
			t.Fatal("nothing comes")
		}
		n.ends(name, 0)
		f.Update(t.Context(), n.member(name, i))
	}
	finished(t.Context(), t, f)
	if len(tape.lines) != members || n.most > streams {
		t.Errorf("%d members were read with up to %d connections", len(tape.lines), n.most)
	}
}

// A right that is missing ends everything at once, with what would grant it.
func TestForbidden(t *testing.T) {
	n := newNode(t)
	n.add("a", "a")
	s := kubetest.New(t)
	s.Refuse("GET /api/v1/namespaces/team/pods/a/log", 403, metav1.StatusReasonForbidden, `pods "a" is forbidden: User "bob" cannot get resource "pods/log" in API group "" in the namespace "team"`, nil)
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	f := &logs.Follower{Client: client.Typed, Sink: &tape{}, Clock: hasty{}, MaxStreams: 1}
	f.Update(t.Context(), n.member("a", 0))
	select {
	case err := <-f.Failed():
		got := failure.From(err)
		if got.Message != `get log of pod team/a: pods "a" is forbidden: User "bob" cannot get resource "pods/log" in API group "" in the namespace "team"` || got.Hint == "" {
			t.Errorf("got %+v", got)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on")
	}
}
