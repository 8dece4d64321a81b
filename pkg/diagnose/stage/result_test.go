package stage

import (
	"testing"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// The state of a stage follows from what is found in it; that the gang fits stops nothing.
func TestSummary(t *testing.T) {
	for name, tt := range map[string]struct {
		verdicts []answer.Verdict
		want     string
	}{
		"nothing":                {nil, answer.StateOK},
		"it fits":                {[]answer.Verdict{answer.FitsNow}, answer.StateOK},
		"it waits":               {[]answer.Verdict{answer.Waiting}, answer.StateWaiting},
		"it fits, and waits":     {[]answer.Verdict{answer.FitsNow, answer.Starting}, answer.StateWaiting},
		"it waits, and cannot":   {[]answer.Verdict{answer.Waiting, answer.Blocked}, answer.StateBlocked},
		"it cannot":              {[]answer.Verdict{answer.Degraded}, answer.StateBlocked},
		"it cannot be evaluated": {[]answer.Verdict{answer.Blocked, answer.Uncertain}, answer.StateUnknown},
	} {
		r := &Result{State: OK("no job ahead")}
		for _, v := range tt.verdicts {
			r.Findings = append(r.Findings, Finding{Finding: answer.Finding{Verdict: v}})
		}
		if got := r.Summary(answer.StageOrder); got != (answer.StageState{Name: answer.StageOrder, State: tt.want, Note: "no job ahead"}) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
