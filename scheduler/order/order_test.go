package order

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// random is an entry that waits for up to a month by noon.
func random(r *rand.Rand, n int) Entry {
	e := Entry{Name: fmt.Sprintf("team/%d", n), Priority: r.Int32N(3), Since: noon.Add(-time.Duration(r.Int64N(int64(30 * 24 * time.Hour))))}
	switch r.IntN(4) {
	case 0:
		e.Expected = Estimate{Runtime: time.Duration(r.Int64N(int64(100 * time.Hour))), Basis: Deadline}
	case 1:
		e.Expected = Estimate{Runtime: time.Duration(r.Int64N(int64(2 * time.Minute))), Basis: Annotation}
	case 2:
		e.Since = noon.Add(-time.Duration(r.IntN(3)) * time.Hour) // equal ones
	}
	return e
}

// A heap needs a strict order: of any three, at any one moment.
func TestItIsAnOrder(t *testing.T) {
	for _, policy := range []Policy{HighestResponseRatio, FirstComeFirstServed} {
		for seed := range uint64(20000) {
			r := rand.New(rand.NewPCG(seed, 1))
			a, b, c := random(r, 1), random(r, 2), random(r, 3)
			less := func(x, y Entry) bool { return policy.Compare(x, y, noon) < 0 }
			switch {
			case policy.Compare(a, b, noon) != -policy.Compare(b, a, noon):
				t.Fatalf("%s: %v and %v are both before the other", policy, a, b)
			case policy.Compare(a, a, noon) != 0, policy.Compare(a, b, noon) == 0:
				t.Fatalf("%s: %v and %v are equal", policy, a, b)
			case less(a, b) && less(b, c) && !less(a, c):
				t.Fatalf("%s: %v, %v, %v go round", policy, a, b, c)
			}
		}
	}
}

func TestPriorityIsFirst(t *testing.T) {
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 2))
		a, b := random(r, 1), random(r, 2)
		if a.Priority > b.Priority && HighestResponseRatio.Compare(a, b, noon) >= 0 {
			t.Fatalf("%v is not before %v", a, b)
		}
	}
}

// Whoever waits is before everybody who comes later than some moment, however short that one is.
func TestNoGangStarves(t *testing.T) {
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 3))
		waits := random(r, 1)
		for n := range 20 {
			// In the worst case all that come are the shortest that count, and each waits for an hour before it is served.
			after := waits.Since.Add(time.Duration(float64(waits.runtime()) / float64(Shortest) * float64(time.Hour)))
			late := Entry{
				Name: fmt.Sprintf("team/late-%d", n), Priority: waits.Priority, Since: after.Add(time.Duration(r.Int64N(int64(time.Hour)))),
				Expected: Estimate{Runtime: 1, Basis: Annotation},
			}
			if HighestResponseRatio.Compare(waits, late, late.Since.Add(time.Hour)) > 0 {
				t.Fatalf("%v is passed by %v", waits, late)
			}
		}
	}
}

// Two change places once at most, which is why a heap of some age is nearly in order.
func TestTwoChangePlacesOnce(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 4))
		a, b := random(r, 1), random(r, 2)
		changes, last := 0, HighestResponseRatio.Compare(a, b, noon)
		for at := noon; at.Before(noon.Add(60 * 24 * time.Hour)); at = at.Add(37 * time.Minute) {
			if now := HighestResponseRatio.Compare(a, b, at); now != last {
				changes, last = changes+1, now
			}
		}
		if changes > 1 {
			t.Fatalf("%v and %v change places %d times", a, b, changes)
		}
	}
}

// Those of whom nothing is known come in the order in which they came.
func TestWithoutEstimates(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	var all []Entry
	for n := range 200 {
		e := random(r, n)
		e.Priority, e.Expected = 0, Estimate{}
		all = append(all, e)
	}
	byRatio, byWait := slices.Clone(all), slices.Clone(all)
	slices.SortFunc(byRatio, func(a, b Entry) int { return HighestResponseRatio.Compare(a, b, noon) })
	slices.SortFunc(byWait, func(a, b Entry) int { return FirstComeFirstServed.Compare(a, b, noon) })
	if !slices.Equal(byRatio, byWait) {
		t.Error("the two policies differ")
	}
}

func TestRatios(t *testing.T) {
	entry := func(waits, runs time.Duration) Entry {
		return Entry{Since: noon.Add(-waits), Expected: Estimate{Runtime: runs, Basis: Deadline}}
	}
	for _, c := range []struct {
		entry Entry
		ratio float64
		text  string
	}{
		{entry(2*time.Hour, time.Hour), 3, "response ratio 3.0: waited 120m, expected to run 60m by its deadline"},
		{entry(-time.Hour, time.Hour), 1, "response ratio 1.0: waited 0s, expected to run 60m by its deadline"}, // clocks differ
		{entry(time.Hour, time.Second), 61, "response ratio 61.0: waited 60m, expected to run 1s by its deadline"},
		{Entry{Since: noon.Add(-12 * time.Hour)}, 1.5, "response ratio 1.5: waited 12h, expected runtime not known, taken for 24h"},
	} {
		if got := c.entry.Ratio(noon); got != c.ratio {
			t.Errorf("ratio %v, want %v", got, c.ratio)
		}
		if got := HighestResponseRatio.Describe(c.entry, noon); got != c.text {
			t.Errorf("%q, want %q", got, c.text)
		}
	}
	if got, want := FirstComeFirstServed.Describe(entry(time.Hour, time.Hour), noon), "first come, first served: waited 60m"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
