package causes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// tally counts judgements.
type tally struct {
	one, two ratio
	rows     map[string]*row // by cause and kind of job
	kinds    map[answer.ActionKind]*ratio
	verified ratio // pieces of advice that the oracle confirms
	failures []failure
	// unplanted are the seeds whose causes could not be planted, unknown the pieces of advice that the oracle cannot apply.
	unplanted, unknown int
}

// row is what became of one cause in one kind of job.
type row struct {
	ratio
	first uint64 // the first seed with a miss
}

// ratio is how many of some were right.
type ratio struct{ right, wrong int }

func (r *ratio) add(right bool) {
	if right {
		r.right++
	} else {
		r.wrong++
	}
}

func (r ratio) String() string { return fmt.Sprintf("%d/%d", r.right, r.right+r.wrong) }

// share is the part that was right, 1 of none.
func (r ratio) share() float64 {
	if r.right+r.wrong == 0 {
		return 1
	}
	return float64(r.right) / float64(r.right+r.wrong)
}

// failure is one miss, with the seed that makes it again.
type failure struct {
	seed        uint64
	names, kind string
	miss        string
}

func (a *tally) add(seed uint64, p planted, j judgement) {
	fail := func(miss string) {
		a.failures = append(a.failures, failure{seed, p.names(), p.scenario.gang.kind + "/" + string(p.scenario.gang.dialect), miss})
	}
	right := len(j.misses) == 0
	if len(p.causes) == 1 {
		a.one.add(right)
		at := entry(&a.rows, fmt.Sprintf("%-36s %s", p.names(), p.scenario.gang.kind))
		if at.add(right); !right && at.wrong == 1 {
			at.first = seed
		}
	} else {
		a.two.add(right)
	}
	if !right {
		fail(strings.Join(j.misses, "; "))
	}
	for _, x := range j.refuted {
		fail("refuted: " + x)
	}
	a.verified.wrong += len(j.refuted)
	a.verified.right += len(j.answer.Unblock) - len(j.refuted) - len(j.unknown)
	a.unknown += len(j.unknown)
	for kind, offered := range j.kinds {
		if entry(&a.kinds, kind).add(offered); !offered {
			fail("no " + string(kind) + " is offered")
		}
	}
}

// entry is the counter of a key, which is made if there is none.
func entry[K comparable, V any](m *map[K]*V, key K) *V {
	if *m == nil {
		*m = map[K]*V{}
	}
	if (*m)[key] == nil {
		(*m)[key] = new(V)
	}
	return (*m)[key]
}

// report is every miss with its seed, the causes by kind of job of which some answer was not right, and the sums.
func (a *tally) report() string {
	var b strings.Builder
	slices.SortFunc(a.failures, func(x, y failure) int {
		return cmp.Or(cmp.Compare(x.names, y.names), cmp.Compare(x.seed, y.seed), cmp.Compare(x.miss, y.miss))
	})
	for _, f := range a.failures {
		fmt.Fprintf(&b, "%-40s %-26s seed %d: %s\n", f.names, f.kind, f.seed, f.miss)
	}
	right := 0
	for _, key := range slices.Sorted(maps.Keys(a.rows)) {
		if r := a.rows[key]; r.wrong > 0 {
			fmt.Fprintf(&b, "%-50s %s right, first miss: seed %d\n", key, r.ratio, r.first)
		} else {
			right++
		}
	}
	fmt.Fprintf(&b, "%d of %d pairs of a cause and a kind of job: all right\n", right, len(a.rows))
	fmt.Fprintf(&b, "one cause: %s right; two causes: %s right; verified advice: %s confirmed, %d not judged; not planted: %d\n", a.one, a.two, a.verified, a.unknown, a.unplanted)
	for _, kind := range slices.Sorted(maps.Keys(a.kinds)) {
		fmt.Fprintf(&b, "  %s offered where there is one: %s\n", kind, a.kinds[kind])
	}
	return b.String()
}

// The least that is right, of what was planted. None of the verified advice may be refuted.
const (
	leastOne, leastTwo, leastOffered = 0.99, 0.95, 0.98
	// enough is how many there must be of a kind of advice for its share to mean something.
	enough = 30
)

// check compares the shares with the least that is right.
func (a *tally) check(t *testing.T) {
	t.Helper()
	for what, share := range map[string]struct{ got, least float64 }{
		"one cause": {a.one.share(), leastOne}, "two causes": {a.two.share(), leastTwo}, "verified advice": {a.verified.share(), 1},
	} {
		if share.got < share.least {
			t.Errorf("%s: %.1f %% right, want %.1f %%", what, 100*share.got, 100*share.least)
		}
	}
	for kind, offered := range a.kinds {
		if offered.right+offered.wrong >= enough && offered.share() < leastOffered {
			t.Errorf("%s is offered in %s of the scenarios in which there is one, want %.0f %%", kind, offered, 100*leastOffered)
		}
	}
	if a.unplanted*10 > a.one.right+a.one.wrong+a.two.right+a.two.wrong {
		t.Errorf("%d scenarios could not be made", a.unplanted)
	}
}
