package gangcache

import (
	"cmp"
	"maps"
	"slices"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Keys lists the gangs that pods of ours are or were members of, by namespace,
// name and dialect. Groups without such a pod are somebody else's, for all that
// is known.
func (r *Roster) Keys() []gang.Key {
	r.mu.RLock()
	defer r.mu.RUnlock()
	keys := make([]gang.Key, 0, len(r.gangs))
	for key, e := range r.gangs {
		if e.pods.count() > 0 {
			keys = append(keys, key)
		}
	}
	return ordered(keys)
}

// All lists the gangs of Keys and those of which there is an object only.
func (r *Roster) All() []gang.Key {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return ordered(slices.Collect(maps.Keys(r.gangs)))
}

func ordered(keys []gang.Key) []gang.Key {
	slices.SortFunc(keys, func(a, b gang.Key) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Dialect, b.Dialect))
	})
	return keys
}
