package claims

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/gangctl/gangctl/internal/enginetest"
)

// four are the members of gang b, of a CPU each.
func four() (all []*corev1.Pod) {
	for i := range 4 {
		all = append(all, enginetest.Pod(fmt.Sprint("b-", i), "b"))
	}
	return all
}

// What is reserved is not for those who make their gang partial: by a higher minimum, or by larger members.
func TestWhatAGangHasLost(t *testing.T) {
	leaving := func(until time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: noon.Add(until)} }
	}
	other, resized := enginetest.Pod("b-9", "b"), enginetest.Pod("b-0", "b", enginetest.CPUs(9))
	for name, c := range map[string]struct {
		lacking int // gang b was whole with four members
		placed  []*corev1.Pod
		set     func(b *book)
		cpus    int64 // of the pod that is tried
		want    bool  // whether the reservation does not bind it
	}{
		"one died":                         {1, four()[:3], nil, 1, true},
		"one died, a larger one comes":     {1, four()[:3], nil, 2, false},
		"two died, a larger one comes":     {2, four()[:2], nil, 2, true},
		"none died, the minimum is higher": {1, four(), nil, 1, false},
		"one died, the minimum is higher":  {4, four()[:3], nil, 2, false},
		"one leaves":                       {1, four()[:3], func(b *book) { b.change = leaving(0) }, 1, false},
		"one should have left long ago":    {1, four()[:3], func(b *book) { b.change = leaving(-leavesWithin) }, 1, true},
		"one died, and it is whole again":  {0, four()[:3], nil, 1, false},
		"another one has its place":        {1, append(four()[:3], other), nil, 1, false},
		"one was resized, another died":    {1, append(four()[1:3], resized), nil, 1, true},
		"all died":                         {1, four()[:1], func(b *book) { b.Unplaced(gangB) }, 1, false},
		"one died an hour ago":             {1, four()[:3], func(b *book) { b.Below(gangB); b.now.SetTime(noon.Add(regainsWithin)); b.Below(gangB) }, 1, true},
		"one died longer ago":              {1, four()[:3], func(b *book) { b.Below(gangB); b.now.SetTime(noon.Add(regainsWithin + 1)) }, 1, false},
		"it was whole in between": {1, four()[:3], func(b *book) {
			b.Below(gangB)
			b.now.SetTime(noon.Add(regainsWithin + 1))
			b.Whole(gangB, four())
			b.Below(gangB)
		}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			b.Whole(gangB, four())
			if b.lacking, b.placed = c.lacking, c.placed; c.set != nil {
				c.set(b)
			}
			pod := enginetest.Pod("b-new", "b", enginetest.CPUs(c.cpus))
			if b.lost(gangB).covers(pod) {
				t.Error("something is lost where nothing is reserved")
			}
			b.Replace(Reservation, []Claim{claim(gangA, "a-0", 4)})
			if got := b.filter(pod, "n1", nil).IsSuccess(); got != c.want {
				t.Errorf("it may use what is reserved: %v, want %v", got, c.want)
			}
			if got := len(b.Withheld(b.nodes(), gangB, []*corev1.Pod{pod}, nil)) == 0; got != c.want {
				t.Errorf("the planner may use it: %v, want %v", got, c.want)
			}
		})
	}
}

// Of the members that get a place together as many may use what is reserved as were lost and are needed, in each placement that is tried. Those
// that are tried and get none cost nothing, nor does it cost twice to be tried twice.
func TestNoMoreThanWasLost(t *testing.T) {
	for lacking, want := range map[int]int{1: 1, 2: 2, 9: 3} {
		b := newBook(t)
		b.Whole(gangB, four())
		b.lacking, b.placed = lacking, four()[:1]
		b.Replace(Reservation, []Claim{claim(gangA, "a-0", 4)})
		p := &Plugin{ledger: b.Ledger}
		for placement := range 2 {
			cycle, tried := framework.NewCycleState(), framework.NewCycleState()
			tried.SetPodGroupSchedulingCycle(cycle)
			free := 0
			for i := range 8 {
				state, pod := framework.NewCycleState(), enginetest.Pod(fmt.Sprint("b-new-", i), "b")
				state.SetPodGroupSchedulingCycle(cycle)
				state.SetPlacementCycleState(tried)
				var skipped bool
				for range 2 {
					_, status := p.PreFilter(t.Context(), state, pod, nil)
					skipped = status.IsSkip()
				}
				if i == 0 || !skipped { // the first one finds no node
					continue
				}
				free++
				for range 2 {
					p.Reserve(t.Context(), state, pod, "n1")
				}
			}
			if free != want {
				t.Errorf("placement %d: %d members may use what is reserved, want %d of the 3 that were lost", placement, free, want)
			}
		}
	}
}

// The memory of a gang is that of its newest members.
func TestWholeIsReplaced(t *testing.T) {
	b := newBook(t)
	b.Whole(gangB, four())
	b.Whole(gangB, four()[:1])
	if w := b.whole[gangB]; len(w.members) != 1 {
		t.Errorf("remembers %v", w)
	}
	b.Below(types.NamespacedName{Name: "unknown"})
	b.Unplaced(gangB)
	b.Unplaced(types.NamespacedName{Name: "unknown"})
	if len(b.whole) != 0 {
		t.Errorf("remembers %v", b.whole)
	}
}
