package gangcache

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kai"
	"github.com/gangctl/gangctl/pkg/gang/dialect/koordinator"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kubebatch"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/gang/dialect/native"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
)

// Readers are the dialects that the scheduler reads, in the order in which they
// count for a pod that is marked in several; PodDisruptionBudgets, which pods
// do not name, come after them. Kueue is not among them: it admits gangs and
// places none. Neither is YuniKorn, whose gangs are placeholders of its own.
func Readers() []gang.Reader {
	return []gang.Reader{
		native.Reader(), schedulerplugins.Reader(), volcano.Reader(), kubebatch.Reader(),
		labels.Reader(), koordinator.Reader(), kai.Reader(),
	}
}

// claims are the gangs that a pod may be a member of, by what it carries.
type claims struct {
	native  gang.Key   // zero for a pod without the field
	objects []gang.Key // whose objects it names, the first that exists counts
	marks   []gang.Key // that its own marks declare, the first counts
	owner   types.UID  // of its controller, by which budgets find it
}

// order is the readers' for pods of a schedulerName: where dialects share a
// mark, the one that the name is known for comes first.
func order(schedulerName string) []gang.Reader {
	readers := Readers()
	slices.SortStableFunc(readers, func(a, b gang.Reader) int {
		return cmp.Compare(dialect.Affinity(b, schedulerName), dialect.Affinity(a, schedulerName))
	})
	return readers
}

// claimsOf reads a pod.
func claimsOf(pod *corev1.Pod, readers []gang.Reader) claims {
	var c claims
	if owner := metav1.GetControllerOf(pod); owner != nil {
		c.owner = owner.UID
	}
	if name, ok := native.NameOf(pod); ok {
		c.native = gang.Key{Dialect: gang.Native, Namespace: pod.Namespace, Name: name}
		return c
	}
	if len(pod.Labels) == 0 && len(pod.Annotations) == 0 {
		return c
	}
	for _, r := range readers {
		name, ok := r.GroupOf(pod)
		if !ok {
			continue
		}
		key := gang.Key{Dialect: r.Dialect, Namespace: pod.Namespace, Name: name}
		if len(r.Kinds) > 0 {
			c.objects = append(c.objects, key)
		}
		if r.FromPods == nil {
			continue
		}
		if _, err := r.FromPods(key, []*corev1.Pod{pod}); err == nil || len(r.Kinds) == 0 {
			c.marks = append(c.marks, key)
		}
	}
	return c
}

// keys are all gangs that the pod may be in by its marks.
func (c claims) keys() []gang.Key {
	if c.native != (gang.Key{}) {
		return []gang.Key{c.native}
	}
	keys := slices.Clone(c.objects)
	for _, key := range c.marks {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// resolve says which gang counts: Kubernetes' own field, then an object that
// exists, then marks that say all by themselves, then an object that is missing
// yet, then a budget. It depends on which objects there are, so it may change.
func (r *Cache) resolve(c claims, namespace string) (key gang.Key, ok bool) {
	if c.native != (gang.Key{}) {
		return c.native, true
	}
	for _, key := range c.objects {
		if e := r.gangs[key]; e != nil && len(e.objects) > 0 {
			return key, true
		}
	}
	if len(c.marks) > 0 {
		return c.marks[0], true
	}
	if len(c.objects) > 0 {
		return c.objects[0], true
	}
	if budget, ok := r.budgets[ownerKey{namespace, c.owner}]; ok && c.owner != "" {
		return budget, true
	}
	return gang.Key{}, false
}
