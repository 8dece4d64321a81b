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

func reasonOf(code answer.Code, free int) Reason {
	return Reason{
		Finding: answer.Finding{Code: code, Message: fmt.Sprintf("%d of 8 GPUs free", free)}, Required: 4, Fit: 2, Nodes: 3,
		Shortages: []Shortage{{Resource: "nvidia.com/gpu", Requested: "8", Available: fmt.Sprint(free), Total: "8"}},
		Blockers:  []Blocker{{Name: "research/bert", Text: "a gang of another namespace (4 GPUs, priority 0)"}}, Reserved: []string{"n1"}, Retry: "when room comes free",
	}
}

func newStore() (*Store, *testclock.FakePassiveClock) {
	clock := testclock.NewFakePassiveClock(time.Unix(1e9, 0))
	return New(clock, nil), clock
}

func TestTextsContainEverything(t *testing.T) {
	reason := reasonOf(answer.NodesBusy, 4)
	if got, want := reason.Text(), "NODES_BUSY: 2 of the 4 members that the gang needs fit: 4 of 8 GPUs free; "+
		"nvidia.com/gpu: 8 requested, 4 available, 8 in total; blocked by a gang of another namespace (4 GPUs, priority 0); room is kept for it on n1; tried again when room comes free"; got != want {
		t.Errorf("of the gang is reported\n%q, want\n%q", got, want)
	}
	if got, want := reason.Sentence(), "2 of the 4 members that its gang needs fit: 4 of 8 GPUs free"; got != want {
		t.Errorf("its members say %q, want %q", got, want)
	}
	if got, want := reason.Unscheduled(), "0/3 nodes are available: "+reason.Sentence()+"."; got != want {
		t.Errorf("one that came late says %q, want %q", got, want)
	}
	reason.AboveMin, reason.Required = true, 5
	if got, want := reason.Sentence(), "its gang has its minimum, with 4 members placed, and there is no room for more: 4 of 8 GPUs free"; got != want {
		t.Errorf("a member above the minimum says %q, want %q", got, want)
	}
	reason.Cut = true
	if got, want := reason.Sentence(), "its gang has its minimum, with 4 members placed, and the search for room for more was cut off: 4 of 8 GPUs free"; got != want {
		t.Errorf("where the search was cut off it says %q, want %q", got, want)
	}
	reason.AboveMin = false
	if got, want := reason.Sentence(), "the search for room for the 5 members that its gang needs was cut off, with room for 2 so far: 4 of 8 GPUs free"; got != want {
		t.Errorf("where the search was cut off members say %q, want %q", got, want)
	}
	if got, want := reason.Text(), "NODES_BUSY: the search for room for the 5 members that the gang needs was cut off, with room for 2 so far: 4 of 8 GPUs free; "; !strings.HasPrefix(got, want) {
		t.Errorf("where the search was cut off the gang says %q, want %q", got, want)
	}
	engines := Reason{Finding: answer.Finding{Code: answer.FitsNotPlaced, Message: "no"}}
	if got, want := engines.Text(), "FITS_NOT_PLACED: no"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := engines.Unscheduled(); got != "no" {
		t.Errorf("in the engine's words: %q", got)
	}
	reason.Finding.Message = strings.Repeat("ü", 2000)
	if got := reason.Text(); len(got) > textLimit || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes, valid: %t", len(got), utf8.ValidString(got))
	}
}

func TestWhatIsNewIsReportedOnce(t *testing.T) {
	b, clock := newStore()
	report := func(reason Reason) (string, time.Duration) {
		reported, again := b.Report(llama, reason, false)
		return reported.Text(), again
	}
	if _, ok := b.LastReported(llama); ok {
		t.Error("a report before the first one")
	}
	first := reasonOf(answer.NodesBusy, 4)
	if text, again := report(first); text != first.Text() || again != 0 {
		t.Fatalf("reported %q, again after %s", text, again)
	}
	if reported, ok := b.LastReported(llama); !ok || reported.Text() != first.Text() {
		t.Errorf("reported %q", reported.Text()) // and it is fresh still
	}
	if _, fresh, ok := b.TakeReport(llama); !fresh || !ok {
		t.Error("the first statement is not fresh")
	}
	report(first)
	if _, fresh, ok := b.TakeReport(llama); fresh || !ok {
		t.Error("the same statement is fresh again")
	}
	// Other numbers have to wait, another reason has not.
	numbers := reasonOf(answer.NodesBusy, 5)
	if text, again := report(numbers); text != first.Text() || again != numbersDelay {
		t.Errorf("reported %q, again after %s", text, again)
	}
	other := reasonOf(answer.Fragmented, 5)
	if text, _ := report(other); text != other.Text() {
		t.Errorf("reported %q", text)
	}
	clock.SetTime(clock.Now().Add(numbersDelay))
	if text, again := report(reasonOf(answer.Fragmented, 6)); text == other.Text() || again != 0 {
		t.Errorf("reported %q after %s, again after %s", text, numbersDelay, again)
	}
	// It waits no more, and then again.
	b.Clear(llama)
	if _, _, ok := b.TakeReport(llama); ok {
		t.Error("a gang that waits no more is reported on")
	}
	if text, _ := report(first); text != first.Text() {
		t.Errorf("reported %q", text)
	}
	if _, fresh, _ := b.TakeReport(llama); !fresh {
		t.Error("that it waits again is not fresh")
	}
}

// What changes every second is not written every second, however it changes.
func TestStatementsAreBounded(t *testing.T) {
	for name, flap := range map[string]func(b *Store, second int) Reason{
		"numbers": func(_ *Store, s int) Reason { return reasonOf(answer.NodesBusy, s%8) },
		"reasons": func(_ *Store, s int) Reason {
			return reasonOf([]answer.Code{answer.NodesBusy, answer.Fragmented}[s%2], s%8)
		},
		"everything": func(_ *Store, s int) Reason { return reasonOf(answer.Code(fmt.Sprint(s)), s) },
		"it waits, and waits not": func(b *Store, s int) Reason {
			if s%2 == 0 {
				b.Clear(llama)
			}
			return reasonOf(answer.NodesBusy, s%8)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, clock := newStore()
			var reported []time.Time
			for second := range 600 {
				b.Report(llama, flap(b, second), false)
				if _, fresh, _ := b.TakeReport(llama); fresh {
					reported = append(reported, clock.Now())
				}
				clock.SetTime(clock.Now().Add(time.Second))
			}
			for i := PerMinute; i < len(reported); i++ {
				if reported[i].Sub(reported[i-PerMinute]) < time.Minute {
					t.Fatalf("more than %d statements in the minute before %s", PerMinute, reported[i])
				}
			}
			if len(reported) < 10 {
				t.Errorf("%d statements in ten minutes: users do not learn of changes", len(reported))
			}
		})
	}
}

// What was put off is reported when it is requested at the time that was given.
func TestWhatIsPutOffIsNotLost(t *testing.T) {
	b, clock := newStore()
	b.Report(llama, reasonOf(answer.NodesBusy, 1), false)
	for free := 2; free < 6; free++ {
		reason := reasonOf(answer.NodesBusy, free)
		reported, again := b.Report(llama, reason, false)
		if again == 0 || reported.Text() == reason.Text() {
			t.Fatalf("%d free: reported at once", free)
		}
		clock.SetTime(clock.Now().Add(again))
		if reported, again = b.Report(llama, reason, false); again != 0 || reported.Text() != reason.Text() {
			t.Errorf("%d free: reported %q, again after %s", free, reported.Text(), again)
		}
	}
}

// After a restart the members have their messages, and no event is needed.
func TestWhatIsKnownIsNotFresh(t *testing.T) {
	b, _ := newStore()
	b.Report(llama, reasonOf(answer.NodesBusy, 1), true)
	if _, fresh, ok := b.TakeReport(llama); fresh || !ok {
		t.Errorf("fresh %t, reported %t", fresh, ok)
	}
}

func TestGangsThatAreGoneAreForgotten(t *testing.T) {
	b, clock := newStore()
	for i := range 100 {
		group := types.NamespacedName{Name: fmt.Sprint(i)}
		b.Report(group, reasonOf(answer.NodesBusy, 1), false)
		b.Clear(group)
	}
	clock.SetTime(clock.Now().Add(2 * minute))
	b.Report(llama, reasonOf(answer.NodesBusy, 1), false)
	if n := len(b.reported); n != 1 {
		t.Errorf("%d gangs are remembered, want 1", n)
	}
}

func TestMetrics(t *testing.T) {
	b, _ := newStore()
	registry := metrics.NewKubeRegistry()
	b.Register(registry.MustRegister)
	other := types.NamespacedName{Name: "other"}
	for _, group := range []types.NamespacedName{llama, other} {
		b.Set(group, reasonOf(answer.NodesBusy, 1))
		b.Set(group, reasonOf(answer.NodesBusy, 2))
		b.Report(group, reasonOf(answer.NodesBusy, 2), false)
	}
	b.Set(other, reasonOf(answer.Fragmented, 2))
	above := reasonOf(answer.TooBig, 1)
	above.AboveMin = true
	b.Set(types.NamespacedName{Name: "whole"}, above)
	b.Clear(llama)
	want := `
# HELP gangctl_scheduler_explanations_total [ALPHA] Explanations reported to users of gangs that wait for places (one event, the conditions of the members and of the gang), by the code of the reason.
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
