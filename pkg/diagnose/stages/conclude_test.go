package stages

import (
	"testing"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

func TestRank(t *testing.T) {
	order := []string{"FAILED", "DEGRADED", "BLOCKED", "WAITING", "UNKNOWN", "FITS_NOW"}
	for i := 1; i < len(order); i++ {
		if a, b := order[i-1], order[i]; rank(answer.Verdict(a)) >= rank(answer.Verdict(b)) {
			t.Errorf("%s does not come before %s", a, b)
		}
	}
	if rank(answer.Verdict("STARTING")) != rank(answer.Verdict("WAITING")) {
		t.Error("what starts passes by itself, as what waits does")
	}
}
