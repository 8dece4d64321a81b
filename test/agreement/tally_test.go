package agreement

import (
	"strings"
	"testing"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

func decided(classes ...Class) []Decision {
	var out []Decision
	for _, c := range classes {
		out = append(out, Decision{Class: c, Moment: Before, Form: ByObject, Answer: answerWith(answer.Waiting, answer.NodesBusy)})
	}
	return out
}

func TestShare(t *testing.T) {
	every := func(Decision) bool { return true }
	tests := []struct {
		classes         []Class
		strict, lenient float64
	}{
		{nil, 100, 100},
		{[]Class{Agree, Agree, Agree, Missed}, 75, 100},
		{[]Class{Agree, Wrong}, 50, 50},
		{[]Class{Agree, Unsure, Missed, Agree}, 50, 200.0 / 3},
	}
	for _, tt := range tests {
		tally := Count(decided(tt.classes...), every)
		if got := tally.Share(true); got != tt.strict {
			t.Errorf("%v: %.1f, want %.1f", tt.classes, got, tt.strict)
		}
		if got := tally.Share(false); got != tt.lenient {
			t.Errorf("%v, without missed: %.1f, want %.1f", tt.classes, got, tt.lenient)
		}
	}
}

func TestPrintListsWhatDoesNotAgree(t *testing.T) {
	all := decided(Agree, Agree, Wrong, Missed)
	all[1].Odd, all[2].Why, all[2].Seed, all[2].Snapshot = "an odd reason", "a wrong answer", 77, "77.yaml.gz"
	all[2].Target = "pod/g0-r0-0"
	var out strings.Builder
	if err := Print(&out, all); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"NODES_BUSY 4", "odd: seed 0", "an odd reason", "wrong: seed 77", "a wrong answer", "why-pending pod/g0-r0-0 -n  --from 77.yaml.gz", "missed: seed 0", "50.0 %", "66.7 %"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
