package diagnose

import (
	"testing"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement"
)

// An answer reports that a search was cut short, also where it is only not known which nodes would take a member.
func TestUndecidedNodesAreReported(t *testing.T) {
	for _, undecided := range []bool{false, true} {
		d := &stage.Diagnosis{Primary: &stage.Finding{Finding: answer.Finding{Stage: answer.StagePlacement}}}
		d.Matrices = map[string]placement.Matrix{"Worker": {Rows: []placement.Row{{Node: "n1"}, {Node: "n2", Undecided: undecided}}}}
		c := confidence(d, &answer.Answer{})
		if level := map[bool]string{false: answer.Exact, true: answer.Heuristic}[undecided]; c.Cut != undecided || c.Level != level {
			t.Errorf("undecided %t: cut %t, %s, want %s", undecided, c.Cut, c.Level, level)
		}
	}
}
