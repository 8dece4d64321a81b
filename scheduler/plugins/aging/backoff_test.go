package aging

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// without is for how many minutes on end there was no reservation, each time, in so many minutes. What change does precedes each.
func (y *yard) without(t *testing.T, minutes int, change ...func(minute int)) (without []int) {
	t.Helper()
	had := true
	for minute := range minutes {
		for _, f := range change {
			f(minute)
		}
		has := len(y.reconcile(t, time.Minute)) > 0
		if had && !has {
			without = append(without, 0)
		}
		if had = has; !has {
			without[len(without)-1]++
		}
	}
	return without
}

// A gang that does not use its places gets no others sooner by not waiting for a moment.
func TestAGangThatComesAndGoesIsNotForgotten(t *testing.T) {
	for name, every := range map[string]int{"when it is given up": 7, "before it is given up": 6} {
		y := newYard(aNode("a", 4))
		g := aGang("g", 4, 1)
		reserved := 0
		y.without(t, 600, func(minute int) {
			y.waiting, y.idle = []Candidate{g}, nil
			if minute%every == 0 {
				y.waiting, y.idle = nil, []Candidate{g}
				y.sweep()
			}
			reserved += len(y.Held())
		})
		if reserved > 150 {
			t.Errorf("%s: it had places for %d of 600 minutes", name, reserved)
		}
	}
}

// Gangs of a namespace that take turns wait longer each time, be they the same or new ones.
func TestGangsOfANamespaceThatTakeTurns(t *testing.T) {
	for name, change := range map[string]func(*yard) func(int){
		"the same gangs": func(y *yard) func(int) {
			for i := range 12 {
				y.waiting = append(y.waiting, aGang(fmt.Sprint("g", i), 4, 1))
			}
			return func(int) {}
		},
		"new gangs": func(y *yard) func(int) {
			return func(minute int) {
				g := aGang(fmt.Sprint("g", minute/5), 4, 1)
				g.Since = noon.Add(-time.Hour)
				y.waiting = []Candidate{g}
			}
		},
	} {
		y := newYard(aNode("a", 4))
		f := change(y)
		// The first two have theirs: only then they take turns.
		if without := y.without(t, 400, f); len(without) > 10 || len(without) < 5 || slices.Max(without) < 60 {
			t.Errorf("%s: they had none for %v minutes", name, without)
		}
		// A gang of another namespace gets what they leave.
		y = newYard(aNode("a", 4))
		f = change(y)
		other := aGang("other", 4, 1)
		other.Group.Namespace, other.Since = "others", noon.Add(time.Minute)
		had := 0
		y.without(t, 400, func(minute int) {
			if f(minute); !slices.ContainsFunc(y.waiting, func(g Candidate) bool { return g.Group == other.Group }) {
				y.waiting = append(y.waiting, other)
			}
			for _, r := range y.Held() {
				if r.Group == other.Group {
					had++
				}
			}
		})
		if had < 15 {
			t.Errorf("%s: another namespace had places for %d minutes", name, had)
		}
	}
}

// One gang that does not use its places does not keep the others of its namespace from having any.
func TestOneWastefulGangIsNotItsNamespace(t *testing.T) {
	y := newYard(aNode("a", 4))
	y.waiting = []Candidate{aGang("wasteful", 4, 1), aGang("z", 4, 1)}
	y.waiting[0].Since = noon.Add(-time.Hour)
	served := map[string]bool{}
	for range 8 {
		for _, r := range y.reconcile(t, time.Minute) {
			served[r.Group.Name] = true
		}
	}
	if !served["labels:z"] {
		t.Errorf("served %v", served)
	}
}

// Places that a gang uses are not counted against its namespace.
func TestPlacesThatAreUsedAreNotCounted(t *testing.T) {
	y := newYard(aNode("a", 4))
	for i := range 20 {
		g := aGang(fmt.Sprint("g", i), 4, 1)
		y.waiting = []Candidate{g}
		if held := y.reconcile(t, time.Minute); len(held) != 1 || held[0].Group != g.Group {
			t.Fatalf("gang %d: held %+v", i, held)
		}
		y.reconcile(t, time.Minute)
		y.Controller.placed(g.Group)
	}
	if len(y.wasteful.entries) != 0 {
		t.Errorf("counted %v", y.wasteful.entries)
	}
}

// What is remembered is bounded, whatever names there are; the oldest goes.
func TestBackoffsAreBounded(t *testing.T) {
	m := newBackoffs[types.NamespacedName](initialBackoff, maxBackoff)
	for i := range maxRemembered + 5 {
		m.increase(types.NamespacedName{Name: fmt.Sprint(i)}, noon.Add(time.Duration(i)*time.Millisecond), 0)
	}
	_, oldest := m.entries[types.NamespacedName{Name: "4"}]
	_, newest := m.entries[types.NamespacedName{Name: fmt.Sprint(maxRemembered + 4)}]
	if len(m.entries) != maxRemembered || oldest || !newest {
		t.Errorf("remembers %d, the oldest %v, the newest %v", len(m.entries), oldest, newest)
	}
}
