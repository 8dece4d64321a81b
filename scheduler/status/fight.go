package status

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// elsewhere tells whether the members that name an object are, in another dialect
// that reads objects of its kind, another gang. That gang's status is the object's.
func (c *Controller) elsewhere(key gang.Key, object gangcache.Object) bool {
	for dialect := range shapes {
		other := gang.Key{Dialect: dialect, Namespace: key.Namespace, Name: key.Name}
		if dialect == key.Dialect || len(c.Gangs.Pods(other)) == 0 {
			continue
		}
		if same, _, ok := c.Objects.Get(other); ok && same.UID == object.UID && same.GroupKind == object.GroupKind {
			return true
		}
	}
	return false
}

// fought is for how long a status must not be written again that somebody else
// changed after it was written. Whoever that is may change it back each time.
func (c *Controller) fought(key gang.Key, u *unstructured.Unstructured, status map[string]any) time.Duration {
	last := c.written[key]
	if last.uid != u.GetUID() || u.GetResourceVersion() == last.before || u.GetResourceVersion() == last.after || same(status, last.fields) {
		return 0
	}
	if c.fights[key] == nil {
		c.fights[key] = &reasons.Limiter{}
	}
	now := c.Clock.Now()
	if left := c.fights[key].Wait(now); left > 0 {
		return left
	}
	c.fights[key].Record(now)
	return 0
}
