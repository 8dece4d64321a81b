package stages

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/placement"
)

// lacking measures the room for the role that is hardest to place, on the cluster as it is.
func (c *climb) lacking() placement.Room { return c.w.Cluster().Lacking(c.Party.Gang, *c.Place) }

// slots is how many members of a role fit on a cluster, each node looked at alone.
func slots(cluster *placement.Cluster, role placement.Role) int64 {
	var sum int64
	for _, s := range placement.Slots(cluster, role.Pod, role.Count, placement.Options{}) {
		sum += s.Slots
	}
	return sum
}

// maxHolders is how many holders are named. More than that nobody reads.
const maxHolders = 12

// holdersOn says who holds how much of a resource on nodes, a line each. If there are many, those that hold the most are
// named, and the others are summed up.
func (c *climb) holdersOn(nodes []string, name corev1.ResourceName) []string {
	type line struct {
		amount int64
		text   string
	}
	var lines []line
	among := sets.New(nodes...)
	for _, h := range c.others() {
		var amount int64
		var on []string
		for _, p := range h.Pods {
			if !among.Has(p.Spec.NodeName) {
				continue
			}
			n := placement.Asked(p, name)
			if n > 0 {
				amount += n
				on = append(on, p.Spec.NodeName)
			}
		}
		if amount > 0 {
			slices.Sort(on)
			lines = append(lines, line{amount, fmt.Sprintf("%s %s holds %s on %s%s", h.Kind, h, phrase.Amount(name, amount), phrase.Names(slices.Compact(on)), c.prospects(h))})
		}
	}
	more := ""
	if len(lines) > maxHolders {
		slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(b.amount, a.amount) })
		var rest int64
		for _, l := range lines[maxHolders:] {
			rest += l.amount
		}
		more = fmt.Sprintf("%d others hold %s", len(lines)-maxHolders, phrase.Amount(name, rest))
		lines = lines[:maxHolders]
	}
	texts := make([]string, 0, len(lines)+1)
	for _, l := range lines {
		texts = append(texts, l.text)
	}
	if more != "" {
		texts = append(texts, more)
	}
	return texts
}

// prospects says whether a holder will go.
func (c *climb) prospects(h *view.Holder) string {
	switch {
	case len(h.Stuck(c.w.Now)) > 0:
		return ", stuck in Terminating"
	case h.Going(c.w.Now):
		return ", is going"
	case h.Leftover():
		return ", left over by a job that has ended"
	case !h.Deadline.IsZero():
		return ", ends about " + phrase.Clock(h.Deadline, c.w.Now)
	case !h.Ends:
		return ", never ends"
	}
	return ""
}
