package stage

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// ConsumersOn reports who uses how much of a resource on nodes, a line each. If there are many, those that use the most are
// named, and the others are summed up.
func (c *Context) ConsumersOn(nodes []string, name corev1.ResourceName) []string {
	return c.onNodes(nodes, name, false)
}

// DaemonsOn reports which DaemonSets use how much of the resource of a room on its nodes, as [Context.ConsumersOn] does for all. Most resources no
// DaemonSet uses anywhere.
func (c *Context) DaemonsOn(r placement.Room) []string {
	type usedByDaemons struct{ corev1.ResourceName }
	anywhere := view.Once(c.View, usedByDaemons{r.Resource}, func() bool {
		return slices.ContainsFunc(c.View.Consumers(), func(h *view.Consumer) bool { return h.DaemonSet && h.Total(r.Resource) > 0 })
	})
	if !anywhere {
		return nil
	}
	return c.onNodes(r.NodeNames(), r.Resource, true)
}

func (c *Context) onNodes(nodes []string, name corev1.ResourceName, daemons bool) []string {
	type consumersQuery struct {
		nodes   uint64
		name    corev1.ResourceName
		daemons bool
	}
	type textsFor struct {
		consumersQuery
		reader audience.Reader
	}
	var hash maphash.Hash
	hash.SetSeed(view.Once(c.View, "seed", maphash.MakeSeed))
	for _, n := range nodes {
		_, _ = hash.WriteString(n) // it cannot fail
		_ = hash.WriteByte(0)
	}
	query := consumersQuery{hash.Sum64(), name, daemons}
	all := func() []consumption { // as many as a cluster has nodes: they are kept with the shape
		return OnceForShape(c, query, func() ([]consumption, bool) {
			among, all := sets.New(nodes...), []consumption(nil)
			for _, h := range c.View.Consumers() {
				if x := consumes(h, among, name); x.amount > 0 && (h.DaemonSet || !daemons) {
					all = append(all, x)
				}
			}
			return all, true
		})
	}
	isPart := func(h *view.Consumer) bool { return h.Makes(c.Gang) } // what that uses is described as such
	if c.usesNoNode() && !slices.ContainsFunc(c.ofJob(), isPart) {
		return view.Once(c.View, textsFor{query, c.Reader}, func() []string { return c.describe(all(), name) })
	}
	own := c.own(c.isOf)
	others := slices.DeleteFunc(slices.Clone(all()), func(x consumption) bool { _, is := own[x.by]; return is })
	for _, former := range own {
		for _, h := range former {
			if x := consumes(h, sets.New(nodes...), name); x.amount > 0 && !daemons {
				at, _ := slices.BinarySearchFunc(others, x, consumption.compare)
				others = slices.Insert(others, at, x)
			}
		}
	}
	return c.describe(others, name)
}

// consumption is how much of a resource a consumer uses on some nodes, by which pods.
type consumption struct {
	by     *view.Consumer
	amount int64
	pods   []*corev1.Pod
}

// compare orders by the consumer.
func (x consumption) compare(other consumption) int {
	return cmp.Or(cmp.Compare(x.by.String(), other.by.String()), cmp.Compare(x.by.Kind, other.by.Kind))
}

func consumes(h *view.Consumer, among sets.Set[string], name corev1.ResourceName) consumption {
	x := consumption{by: h}
	for _, p := range h.Pods {
		if !among.Has(p.Spec.NodeName) {
			continue
		}
		if n := request.OfResource(p, name); n > 0 {
			x.amount, x.pods = x.amount+n, append(x.pods, p)
		}
	}
	return x
}

// describe is a line for each consumption, or for the largest, and one for the others.
func (c *Context) describe(all []consumption, name corev1.ResourceName) []string {
	more := ""
	if len(all) > MaxLines {
		all = slices.Clone(all)
		slices.SortStableFunc(all, func(a, b consumption) int { return cmp.Compare(b.amount, a.amount) })
		var rest int64
		for _, x := range all[MaxLines:] {
			rest += x.amount
		}
		more = fmt.Sprintf("%d others hold %s", len(all)-MaxLines, phrase.AmountUp(name, rest))
		all = all[:MaxLines]
	}
	texts := make([]string, 0, len(all)+1)
	for _, x := range all {
		on := sets.New[string]()
		for _, p := range x.pods {
			on.Insert(p.Spec.NodeName)
		}
		texts = append(texts, fmt.Sprintf("%s holds %s on %s%s", c.Title(x.by), phrase.AmountUp(name, x.amount), phrase.Names(sets.List(on)), c.Prospects(x.by, x.pods...)))
	}
	if more != "" {
		texts = append(texts, more)
	}
	return texts
}
