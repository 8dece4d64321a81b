package reasons

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	testclock "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

var llama = types.NamespacedName{Namespace: "research", Name: "labels:llama"}

func noteOf(code answer.Code, free int) Note {
	return Note{
		Finding: answer.Finding{Code: code, Message: fmt.Sprintf("%d of 8 GPUs free", free)}, Need: 4, Fit: 2, Among: 3,
		Shortages: []Shortage{{Resource: "nvidia.com/gpu", Requested: "8", Available: fmt.Sprint(free), Total: "8"}},
		Blockers:  []string{"research/bert"}, Kept: []string{"n1"}, Retry: "when room comes free",
	}
}

func newTeller() (*Board, *testclock.FakePassiveClock) {
	clock := testclock.NewFakePassiveClock(time.Unix(1e9, 0))
	return &Board{Clock: clock}, clock
}

func TestTextsHoldEverything(t *testing.T) {
	note := noteOf(answer.NodesBusy, 4)
	if got, want := note.Text(), "NODES_BUSY: 2 of the 4 members that the gang needs fit: 4 of 8 GPUs free; "+
		"nvidia.com/gpu: 8 requested, 4 available, 8 in total; blocked by research/bert; room is kept for it on n1; tried again when room comes free"; got != want {
		t.Errorf("of the gang is said\n%q, want\n%q", got, want)
	}
	if got, want := note.Sentence(), "2 of the 4 members that its gang needs fit: 4 of 8 GPUs free"; got != want {
		t.Errorf("its members say %q, want %q", got, want)
	}
	if got, want := note.Unscheduled(), "0/3 nodes are available: "+note.Sentence()+"."; got != want {
		t.Errorf("one that came late says %q, want %q", got, want)
	}
	note.Surplus, note.Need = true, 5
	if got, want := note.Sentence(), "its gang has the 4 members that it needs, and there is no room for more: 4 of 8 GPUs free"; got != want {
		t.Errorf("a surplus member says %q, want %q", got, want)
	}
	engines := Note{Finding: answer.Finding{Code: answer.FitsNotPlaced, Message: "no"}}
	if got, want := engines.Text(), "FITS_NOT_PLACED: no"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := engines.Unscheduled(); got != "no" {
		t.Errorf("in the engine's words: %q", got)
	}
	note.Finding.Message = strings.Repeat("ü", 2000)
	if got := note.Text(); len(got) > textLimit || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes, valid: %t", len(got), utf8.ValidString(got))
	}
}

func TestWhatIsNewIsToldOnce(t *testing.T) {
	b, clock := newTeller()
	tell := func(note Note) (string, time.Duration) {
		said, again := b.Tell(llama, note, false)
		return said.Text(), again
	}
	if _, ok := b.Said(llama); ok {
		t.Error("something was said before anybody was told")
	}
	first := noteOf(answer.NodesBusy, 4)
	if text, again := tell(first); text != first.Text() || again != 0 {
		t.Fatalf("told %q, again after %s", text, again)
	}
	if said, ok := b.Said(llama); !ok || said.Text() != first.Text() {
		t.Errorf("said %q", said.Text()) // and it is news still
	}
	if _, news, ok := b.Told(llama); !news || !ok {
		t.Error("the first statement is no news")
	}
	tell(first)
	if _, news, ok := b.Told(llama); news || !ok {
		t.Error("the same statement is news again")
	}
	// Other numbers have to wait, another reason has not.
	numbers := noteOf(answer.NodesBusy, 5)
	if text, again := tell(numbers); text != first.Text() || again != settled {
		t.Errorf("told %q, again after %s", text, again)
	}
	other := noteOf(answer.Fragmented, 5)
	if text, _ := tell(other); text != other.Text() {
		t.Errorf("told %q", text)
	}
	clock.SetTime(clock.Now().Add(settled))
	if text, again := tell(noteOf(answer.Fragmented, 6)); text == other.Text() || again != 0 {
		t.Errorf("told %q after %s, again after %s", text, settled, again)
	}
	// It waits no more, and then again.
	b.Clear(llama)
	if _, _, ok := b.Told(llama); ok {
		t.Error("a gang that waits no more is told of")
	}
	if text, _ := tell(first); text != first.Text() {
		t.Errorf("told %q", text)
	}
	if _, news, _ := b.Told(llama); !news {
		t.Error("that it waits again is no news")
	}
}

// What changes every second is not written every second, however it changes.
func TestStatementsAreBounded(t *testing.T) {
	for name, flap := range map[string]func(b *Board, second int) Note{
		"numbers": func(_ *Board, s int) Note { return noteOf(answer.NodesBusy, s%8) },
		"reasons": func(_ *Board, s int) Note {
			return noteOf([]answer.Code{answer.NodesBusy, answer.Fragmented}[s%2], s%8)
		},
		"everything": func(_ *Board, s int) Note { return noteOf(answer.Code(fmt.Sprint(s)), s) },
		"it waits, and waits not": func(b *Board, s int) Note {
			if s%2 == 0 {
				b.Clear(llama)
			}
			return noteOf(answer.NodesBusy, s%8)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, clock := newTeller()
			var told []time.Time
			for second := range 600 {
				b.Tell(llama, flap(b, second), false)
				if _, news, _ := b.Told(llama); news {
					told = append(told, clock.Now())
				}
				clock.SetTime(clock.Now().Add(time.Second))
			}
			for i := PerMinute; i < len(told); i++ {
				if told[i].Sub(told[i-PerMinute]) < time.Minute {
					t.Fatalf("more than %d statements in the minute before %s", PerMinute, told[i])
				}
			}
			if len(told) < 10 {
				t.Errorf("%d statements in ten minutes: users do not learn of changes", len(told))
			}
		})
	}
}

// What was put off is told when it is asked for at the time that was given.
func TestWhatIsPutOffIsNotLost(t *testing.T) {
	b, clock := newTeller()
	b.Tell(llama, noteOf(answer.NodesBusy, 1), false)
	for free := 2; free < 6; free++ {
		note := noteOf(answer.NodesBusy, free)
		said, again := b.Tell(llama, note, false)
		if again == 0 || said.Text() == note.Text() {
			t.Fatalf("%d free: told at once", free)
		}
		clock.SetTime(clock.Now().Add(again))
		if said, again = b.Tell(llama, note, false); again != 0 || said.Text() != note.Text() {
			t.Errorf("%d free: told %q, again after %s", free, said.Text(), again)
		}
	}
}

// After a restart the members say what they said, and nobody needs an event.
func TestWhatIsHeardIsNoNews(t *testing.T) {
	b, _ := newTeller()
	b.Tell(llama, noteOf(answer.NodesBusy, 1), true)
	if _, news, ok := b.Told(llama); news || !ok {
		t.Errorf("news %t, told %t", news, ok)
	}
}

func TestGangsThatAreGoneAreForgotten(t *testing.T) {
	b, clock := newTeller()
	for i := range 100 {
		group := types.NamespacedName{Name: fmt.Sprint(i)}
		b.Tell(group, noteOf(answer.NodesBusy, 1), false)
		b.Clear(group)
	}
	clock.SetTime(clock.Now().Add(2 * minute))
	b.Tell(llama, noteOf(answer.NodesBusy, 1), false)
	if n := len(b.told); n != 1 {
		t.Errorf("%d gangs are remembered, want 1", n)
	}
}

func TestMetrics(t *testing.T) {
	b, _ := newTeller()
	registry := metrics.NewKubeRegistry()
	b.Register(registry.MustRegister)
	other := types.NamespacedName{Name: "other"}
	for _, group := range []types.NamespacedName{llama, other} {
		b.Post(group, noteOf(answer.NodesBusy, 1))
		b.Post(group, noteOf(answer.NodesBusy, 2))
		b.Tell(group, noteOf(answer.NodesBusy, 2), false)
	}
	b.Post(other, noteOf(answer.Fragmented, 2))
	surplus := noteOf(answer.TooBig, 1)
	surplus.Surplus = true
	b.Post(types.NamespacedName{Name: "whole"}, surplus)
	b.Clear(llama)
	want := `
# HELP gangctl_scheduler_explanations_total [ALPHA] Explanations told to users of gangs that wait for places (one event, the conditions of the members and of the gang), by the code of the reason.
# TYPE gangctl_scheduler_explanations_total counter
gangctl_scheduler_explanations_total{code="NODES_BUSY"} 2
# HELP gangctl_scheduler_waiting_gangs [ALPHA] Gangs that were tried and wait for places, by the code of the reason.
# TYPE gangctl_scheduler_waiting_gangs gauge
gangctl_scheduler_waiting_gangs{code="FRAGMENTED"} 1
gangctl_scheduler_waiting_gangs{code="NODES_BUSY"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
