package gangcache

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
)

// Readers are the dialects that the scheduler reads. Kueue is not among them: it admits gangs and places none. Neither is
// YuniKorn, whose gangs are placeholders of its own.
func Readers() []gang.Reader {
	return slices.DeleteFunc(dialect.Readers(), func(r gang.Reader) bool { return r.Dialect == gang.Kueue || r.Dialect == gang.YuniKorn })
}

// ownerOf is the controller of a pod.
func ownerOf(pod *corev1.Pod) ownerKey {
	owner := ownerKey{namespace: pod.Namespace}
	if ref := metav1.GetControllerOf(pod); ref != nil {
		owner.uid = ref.UID
	}
	return owner
}

// resolve returns the gang of a pod: the one that it names, or that of a budget for the pods of its controller.
func (c *Cache) resolve(m gang.Membership, owner ownerKey) (key gang.Key, ok bool) {
	exists := func(key gang.Key) bool { e := c.gangs[key]; return e != nil && len(e.objects) > 0 }
	if key, ok := m.Resolve(exists); ok {
		return key, true
	}
	if keys := c.budgets[owner]; len(keys) > 0 && owner.uid != "" {
		return keys[0], true
	}
	return gang.Key{}, false
}

// byName orders the gangs of one namespace and dialect.
func byName(a, b gang.Key) int { return strings.Compare(a.Name, b.Name) }
