package pods

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement/quota"
)

// spareQuotas notes the quotas that keep members from being made that the gang can do without, each by what it has the least of, and counts these members.
func spareQuotas(c *stage.Context, out *stage.Result, missing, spare []absent) {
	for _, q := range c.View.Snap.ResourceQuotas {
		if q.Namespace != c.Gang.Meta.Namespace {
			continue
		}
		hard, why, most := quota.Hard(q), "", int64(0)
		for _, key := range slices.Sorted(maps.Keys(hard)) {
			used, limit, needed, more := q.Status.Used[key], hard[key], charged(q, key, missing), charged(q, key, spare)
			left := limit.DeepCopy()
			left.Sub(used)
			left.Sub(needed)
			refused := refusedOf(q, key, spare, left)
			if left.Sign() < 0 || refused <= most { // the gang itself has too little of it
				continue
			}
			needed.Add(more)
			name := quota.Resource(key)
			most, why = refused, fmt.Sprintf("%s of %s used, and the %d that are missing need %s", phrase.Quantity(name, request.Amount(name, used)), phrase.Amount(name, request.Amount(name, limit)),
				countAll(spare)+countAll(missing), phrase.Quantity(name, request.Amount(name, needed)))
		}
		if most > 0 {
			out.Note("quota %s of namespace %s keeps %d of %d members from being made: %s; the gang needs %d", q.Name, q.Namespace, most, c.Gang.Total(), why, c.Gang.Min)
			out.Refused = max(out.Refused, most)
		}
	}
}

// refusedOf is how many members a quota refuses of which it has so much left.
func refusedOf(q *corev1.ResourceQuota, key corev1.ResourceName, members []absent, left resource.Quantity) (n int64) {
	name := quota.Resource(key)
	room := request.Amount(name, left)
	for _, m := range members {
		single := m
		single.count = 1
		one := request.Amount(name, charged(q, key, []absent{single}))
		if one <= 0 {
			continue
		}
		fit := min(m.count, max(0, room)/one)
		room -= fit * one
		n += m.count - fit
	}
	return n
}
