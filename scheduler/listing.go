package scheduler

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/scheduler/api"
	"github.com/gangctl/gangctl/scheduler/plugins/aging"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// listing is the state of all gangs, as it is served at /gangs.
type listing struct {
	*gangs
	aging *aging.Controller
	clock clock.PassiveClock
}

var _ api.Source = listing{}

// Leading implements api.Source.
func (l listing) Leading() bool { return l.leads.Load() }

// Gangs implements api.Source.
func (l listing) Gangs(namespace string) ([]api.Gang, error) {
	if !l.synced.done() {
		return nil, api.ErrNotReady
	}
	replacements := map[types.NamespacedName][]api.Claim{}
	for _, c := range l.claims.List(claims.Replacement) {
		replacements[c.For] = append(replacements[c.For], api.Claim{Node: c.Node, Member: c.Pod.Name, Until: c.Until})
	}
	reserved := map[types.NamespacedName]*api.Reservation{}
	for _, r := range l.aging.Held() {
		entry := &api.Reservation{Nodes: slices.Sorted(maps.Keys(r.Nodes)), Since: r.Since}
		if start := r.Start; !start.IsZero() {
			entry.Start = &start
		}
		reserved[r.Group] = entry
	}
	var list []api.Gang
	now := l.clock.Now()
	for _, key := range l.cache.Keys() {
		if namespace != "" && key.Namespace != namespace {
			continue
		}
		group := key.VirtualGroup()
		f := api.Facts{
			Key: key, Pods: l.cache.Pods(key), MinMember: l.cache.MinCount(key), Lack: l.cache.Lack(key),
			Priority: l.cache.Priority(key), Claims: sorted(replacements[group]), Reservation: reserved[group],
			Ranking: l.ranking, At: now,
		}
		if required, _, ok := l.cache.Required(key); ok {
			f.Required = required
		}
		if object, ok := l.cache.Object(key); ok {
			f.Object = &api.Object{
				APIVersion: object.Kind.GroupVersion().String(), Kind: object.Kind.Kind, Name: object.Key.Name, UID: string(object.UID),
			}
		}
		if reason, ok := l.reasons.Get(group); ok {
			f.Reason = &reason
		}
		list = append(list, api.Describe(f))
	}
	return list, nil
}

func sorted(claims []api.Claim) []api.Claim {
	slices.SortFunc(claims, func(a, b api.Claim) int { return a.Until.Compare(b.Until) })
	return claims
}
