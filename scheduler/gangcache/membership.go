package gangcache

import (
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
)

// Readers are the dialects that the scheduler reads. Kueue is not among them: it admits gangs and places none. Neither is
// YuniKorn, whose gangs are placeholders of its own.
func Readers() []gang.Reader {
	return slices.DeleteFunc(dialect.Readers(), func(r gang.Reader) bool { return r.Dialect == gang.Kueue || r.Dialect == gang.YuniKorn })
}

// resolve returns the gang of a pod: the one that it names, or that of a budget for the pods of its controller.
func (c *Cache) resolve(m gang.Membership, owner gang.Identity) (key gang.Key, ok bool) {
	exists := func(key gang.Key) bool { e := c.gangs[key]; return e != nil && len(e.objects) > 0 }
	if key, ok := m.Resolve(exists); ok {
		return key, true
	}
	if keys := c.budgets[owner]; len(keys) > 0 && owner.UID != "" {
		return keys[0], true
	}
	return gang.Key{}, false
}

// byName orders the gangs of one namespace and dialect.
func byName(a, b gang.Key) int { return strings.Compare(a.Name, b.Name) }
