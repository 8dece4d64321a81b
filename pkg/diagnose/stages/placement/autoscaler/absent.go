package autoscaler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
)

// Absent adds what autoscalers do about what was found to be absent since an index, and has those findings first without which more nodes would come.
func Absent(c *stage.Context, out *stage.Result, from int) {
	owed(c, out)
	for i := from; i < len(out.Findings); i++ {
		if f := &out.Findings[i]; nodesMayBring(*f) {
			byAutoscaler(c, f)
		}
	}
	slices.SortStableFunc(out.Findings[from:], func(a, b stage.Finding) int {
		switch first := unknownLabel(c, a); {
		case first == unknownLabel(c, b):
			return 0
		case first:
			return -1
		}
		return 1
	})
}

// byAutoscaler adds what autoscalers do about what is absent. Where one would bring a resource, and has not, or cannot, that is for administrators; rules are the user's own, and so is a slip in the name of a resource that there is: no other
// pool helps that.
func byAutoscaler(c *stage.Context, f *stage.Finding) {
	if late := overdue(c, ordersOf(c)); late != "" {
		f.Message += "; and " + late
	}
	Report(c, f)
	if f.Code == answer.ResourceNotOffered && f.Verdict == answer.Blocked && (Retried(c) || len(f.Fixes) == 0 && (unreadyPool(c) || unable(c))) {
		f.As(answer.Blocked, answer.Admin)
	}
}

// nodesMayBring reports whether what is absent may come with nodes that are not there yet.
func nodesMayBring(f stage.Finding) bool {
	return f.Code == answer.ResourceNotOffered || f.Code == answer.SelectorNoMatch
}

// unknownLabel reports whether Karpenter adds no nodes as none that it may add has the label that a finding is about: without that rule nodes come, and bring what else is absent.
func unknownLabel(c *stage.Context, f stage.Finding) bool {
	key, _ := f.Facts["key"].(string)
	return f.Code == answer.SelectorNoMatch && slices.ContainsFunc(ordersOf(c).refusals, func(e view.Event) bool {
		return strings.Contains(e.Message, fmt.Sprintf("label %q does not have known values", key))
	})
}
