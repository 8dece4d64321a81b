package resize

import (
	"strings"
	"testing"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// A change that the job keeps is done unseen only if the flags name it, or --yes does.
func TestBegunIsConfirmed(t *testing.T) {
	a := newAPIServer(t)
	a.interrupted(t, 1)
	for _, tt := range []struct {
		name       string
		yes, typed bool
		dry        dryRun
		asks       bool
	}{
		{"planted", false, false, dryRunNone, true},
		{"--yes", true, false, dryRunNone, false},
		{"the same flags", false, true, dryRunNone, false},
		{"a dry run", false, false, dryRunServer, false},
	} {
		o, to := options(tt.yes), a.target(t)
		o.DryRun = tt.dry
		if tt.typed {
			if err := o.flagSet.Parse([]string{"--workers", "2"}); err != nil {
				t.Fatal(err)
			}
		}
		p, err := o.plan(to)
		if err != nil {
			t.Fatal(err)
		}
		failed := failure.From(o.confirmBegun(to, p))
		if (failed != nil) != tt.asks || failed != nil && !strings.Contains(failed.Hint, "gangctl resize tfjob/llama -n team --yes") {
			t.Errorf("%s: %+v", tt.name, failed)
		}
	}
}
