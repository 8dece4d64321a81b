package place

import (
	"fmt"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
)

// preemption adds which jobs of a lower priority run, and that the gang's scheduler has not preempted them, or may not.
func preemption(c *stage.Context, f *stage.Finding) {
	mine := stage.TermsOf(c.Request)
	var lower []*view.Consumer
	for _, h := range c.Others() {
		if h.Ends && h.Priority() < mine.Priority {
			lower = append(lower, h)
		}
	}
	name := func(h *view.Consumer) string {
		return fmt.Sprintf("%s (priority %d < %d)", c.Title(h), h.Priority(), mine.Priority)
	}
	switch {
	case len(lower) == 0:
		f.Fact("victims", false)
	case mine.Policy != "":
		f.Detail("its preemptionPolicy is %s: it may not preempt %s", mine.Policy, phrase.NamesOf(lower, name))
	default:
		f.Detail("its scheduler may preempt %s, and has not yet", phrase.NamesOf(lower, name))
	}
}
