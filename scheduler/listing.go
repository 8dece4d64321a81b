package scheduler

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/scheduler/api"
	"github.com/gangctl/gangctl/scheduler/plugins/aging"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// listing is what is known of all gangs; it is what is served at /gangs.
type listing struct {
	*gangs
	keeper *aging.Keeper
}

var _ api.Source = listing{}

// Leading implements gangsapi.Source.
func (l listing) Leading() bool { return l.leads.Load() }

// Gangs implements gangsapi.Source.
func (l listing) Gangs(namespace string) ([]api.Gang, error) {
	if !l.synced.done() {
		return nil, api.ErrNotReady
	}
	holds := map[types.NamespacedName][]api.Hold{}
	for _, c := range l.claims.List(claims.Replacement) {
		holds[c.For] = append(holds[c.For], api.Hold{Node: c.Node, Member: c.Pod.Name, Until: c.Until})
	}
	reserved := map[types.NamespacedName]*api.Reservation{}
	for _, r := range l.keeper.Held() {
		entry := &api.Reservation{Nodes: slices.Sorted(maps.Keys(r.Nodes)), Since: r.Since}
		if start := r.Start; !start.IsZero() {
			entry.Start = &start
		}
		reserved[r.Group] = entry
	}
	var list []api.Gang
	for _, key := range l.roster.Keys() {
		if namespace != "" && key.Namespace != namespace {
			continue
		}
		group := types.NamespacedName{Namespace: key.Namespace, Name: key.VirtualName()}
		f := api.Facts{
			Key: key, Pods: l.roster.Pods(key), MinMember: l.roster.MinCount(key), Incomplete: l.roster.Incomplete(key),
			Priority: l.roster.Priority(key), Holds: sorted(holds[group]), Reservation: reserved[group],
		}
		if need, _, ok := l.roster.Required(key); ok {
			f.Need = need
		}
		if object, ok := l.roster.Object(key); ok {
			f.Object = &api.Object{
				APIVersion: object.Kind.GroupVersion().String(), Kind: object.Kind.Kind, Name: object.Key.Name, UID: string(object.UID),
			}
		}
		if note, ok := l.notes.Get(group); ok {
			f.Note = &note
		}
		list = append(list, api.Describe(f))
	}
	return list, nil
}

func sorted(holds []api.Hold) []api.Hold {
	slices.SortFunc(holds, func(a, b api.Hold) int { return a.Until.Compare(b.Until) })
	return holds
}
