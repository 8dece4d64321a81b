package advice

import (
	"slices"
	"testing"
	"time"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/placement"
)

// ticking is a clock that goes on by a step at each look.
func ticking(step time.Duration) func() time.Time {
	now := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	return func() time.Time {
		now = now.Add(step)
		return now
	}
}

func TestBudgetParts(t *testing.T) {
	b := budget{now: ticking(time.Second)}
	b.end = b.now().Add(100 * time.Second)
	looks := func() (n int) {
		for !b.spent() {
			n++
		}
		return n
	}
	var first, second, third int
	b.part(answer.Wait, func() { first = looks() })
	b.part(answer.Trim, func() { second = looks() })
	b.part(answer.Relax, func() { b.spent() })
	b.part(answer.Fewer, func() { b.partial = true })
	b.part(answer.Evict, func() { third = looks() })
	if first < 40 || first > 50 || second < 20 || second > 25 || third < 7 { // each part looks once before it begins
		t.Errorf("parts had %d, %d and %d looks: each is to have half of what is left", first, second, third)
	}
	if want := []answer.ActionKind{answer.Wait, answer.Trim, answer.Fewer, answer.Evict}; !slices.Equal(b.cut, want) {
		t.Errorf("cut %v, want %v", b.cut, want)
	}
}

func TestBudgetWithoutEnd(t *testing.T) {
	b := budget{now: ticking(time.Hour)}
	b.part(answer.Wait, func() {
		if b.spent() {
			t.Error("there is no end, and it is spent")
		}
	})
	if b.left(0) != placement.DefaultBudget || b.left(time.Second) != time.Second || len(b.cut) != 0 {
		t.Errorf("left %v, cut %v", b.left(0), b.cut)
	}
}

// A search for a placement gets no more than what is left, and always something: 0 would mean the default.
func TestBudgetLeft(t *testing.T) {
	b := budget{now: ticking(0)}
	b.end = b.now().Add(50 * time.Millisecond)
	if got := b.left(0); got != 50*time.Millisecond {
		t.Errorf("got %v", got)
	}
	b.end = b.now().Add(-time.Second)
	if got := b.left(0); got != time.Millisecond {
		t.Errorf("got %v", got)
	}
}

func TestLeast(t *testing.T) {
	tries := 0
	enough := func(needed ...int) func([]int) bool {
		return func(set []int) bool {
			tries++
			return !slices.ContainsFunc(needed, func(n int) bool { return !slices.Contains(set, n) })
		}
	}
	all := make([]int, 64)
	for i := range all {
		all[i] = i
	}
	for _, needed := range [][]int{{0}, {5}, {63}, {3, 40}, {0, 1, 2}} {
		tries = 0
		if got := least(all, enough(needed...)); !slices.Equal(got, needed) || tries > 80 {
			t.Errorf("got %v after %d tries, want %v", got, tries, needed)
		}
	}
	if got := least([]int{7}, enough(7)); !slices.Equal(got, []int{7}) {
		t.Errorf("got %v", got)
	}
}

func TestSmallest(t *testing.T) {
	from := func(n int64) func(int64) bool { return func(x int64) bool { return x >= n } }
	for _, tt := range []struct {
		lo, hi, first, want int64
		ok                  bool
	}{{1, 8, 5, 5, true}, {1, 8, 1, 1, true}, {1, 8, 8, 8, true}, {1, 8, 9, 0, false}, {2, 1, 0, 0, false}} {
		if got, ok := smallest(tt.lo, tt.hi, from(tt.first)); got != tt.want || ok != tt.ok {
			t.Errorf("%+v: got %d, %v", tt, got, ok)
		}
	}
}

func TestCombinations(t *testing.T) {
	var got [][]int
	for set := range combinations([]int{1, 2, 3, 4}, 2) {
		got = append(got, set)
	}
	want := [][]int{{1, 2}, {1, 3}, {1, 4}, {2, 3}, {2, 4}, {3, 4}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %v", got)
	}
	n := 0
	for range combinations([]int{1, 2, 3, 4}, 2) {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("it went on: %d", n)
	}
}

// Every kind of action has a place in the order of who can do it.
func TestRank(t *testing.T) {
	users := []answer.ActionKind{answer.Fix, answer.Reshape, answer.Trim, answer.Relax, answer.Wait, answer.Fewer}
	admins := []answer.ActionKind{answer.Fix, answer.Quota, answer.Uncordon, answer.Move, answer.AddNodes, answer.Evict}
	last := -1
	for by, kinds := range [][]answer.ActionKind{users, admins} {
		for _, kind := range kinds {
			r := rank(answer.Action{Kind: kind, By: []answer.Who{answer.User, answer.Admin}[by]})
			if r <= last {
				t.Errorf("%s has rank %d, after %d", kind, r, last)
			}
			last = r
		}
	}
}
