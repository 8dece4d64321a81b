package whatif

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
)

// editGroup makes the gang object new: another minimum, what these members need, no status.
func editGroup(s *snapshot.Snapshot, g *gang.Gang, spec *Spec) *snapshot.Snapshot {
	d := g.Decl
	if d == nil || d.Kind.Kind == "" {
		return s
	}
	if d.Key.Dialect == gang.PDB {
		return editBudget(s, d, spec.Min)
	}
	return Edit(s, d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name, func(u *unstructured.Unstructured) {
		unstructured.RemoveNestedField(u.Object, "status")
		for _, f := range changedFields(g, spec) {
			Set(u, f.value, f.path...)
		}
	})
}

// field is one field of an object and what it is set to.
type field struct {
	path  []string
	value any
}

// declares reports whether group objects of a dialect and version have a field: whether its writer writes it.
func declares(d *gang.Declaration, path []string) bool {
	w, ok := dialect.WriterOf(d.Key.Dialect)
	if !ok || w.Object == nil {
		return false
	}
	u := w.Object(gang.Declaration{Key: d.Key, MinMember: 1, Queue: "any", PriorityClass: "any"}, d.Kind.GroupVersion())
	_, found, err := unstructured.NestedString(u.Object, path...)
	return found && err == nil
}

// groupFields are the fields of a gang object about its members: how many, what they need, where they wait, and how urgent they are.
func groupFields(g *gang.Gang, spec *Spec) []field {
	d := g.Decl
	var fields []field
	if queue := []string{"spec", "queue"}; declares(d, queue) {
		fields = append(fields, field{queue, cmp.Or(spec.Queue, d.Queue)})
	}
	if class := []string{"spec", "priorityClassName"}; declares(d, class) {
		fields = append(fields, field{class, cmp.Or(spec.PriorityClass, d.PriorityClass)})
	}
	if g.OfScheduler { // which counts its pods one by one
		return fields
	}
	fields = append(fields, field{MinimumPath(d), int64(gang.Sum(spec.Min, g.FirstPods))})
	if d.Key.Dialect == gang.Native {
		return fields
	}
	if d.MinResources != nil {
		fields = append(fields, field{[]string{"spec", "minResources"}, texts(Needs(spec.Roles, spec.Min))})
	}
	if d.RoleMin != nil {
		mins := map[string]any{}
		for name, n := range d.RoleMin {
			mins[name] = int64(n)
			for i, r := range g.Roles {
				if strings.EqualFold(r.Name, name) && n >= r.Replicas {
					mins[name] = int64(spec.Roles[i].Replicas) // it was all of them
				}
			}
		}
		fields = append(fields, field{[]string{"spec", "minTaskMember"}, mins})
	}
	return fields
}

// changedFields are those of them that an edit changes.
func changedFields(g *gang.Gang, spec *Spec) []field {
	before := groupFields(g, &Spec{Roles: g.Roles, Min: g.Decl.MinMember - g.FirstPods})
	var changed []field
	for i, f := range groupFields(g, spec) {
		if !reflect.DeepEqual(f.value, before[i].value) {
			changed = append(changed, f)
		}
	}
	return changed
}

func texts(list corev1.ResourceList) map[string]any {
	out := map[string]any{}
	for name, q := range list {
		out[string(name)] = q.String()
	}
	return out
}

// editBudget changes the minimum where a PodDisruptionBudget stands for the gang.
func editBudget(s *snapshot.Snapshot, d *gang.Declaration, n int32) *snapshot.Snapshot {
	return Budget(s, d, func(object metav1.Object) {
		if b, ok := object.(*policyv1.PodDisruptionBudget); ok {
			least := intstr.FromInt32(n)
			b.Spec.MinAvailable = &least
		}
	})
}

// Budget is the cluster in which the PodDisruptionBudget that stands for a gang was edited.
func Budget(s *snapshot.Snapshot, d *gang.Declaration, edit func(metav1.Object)) *snapshot.Snapshot {
	c := s.Clone()
	for i, b := range slices.Clone(c.DisruptionBudgets) {
		if b.Namespace == d.Key.Namespace && b.Name == d.Key.Name {
			b = b.DeepCopy()
			edit(b)
			c.DisruptionBudgets[i] = b
		}
	}
	return c
}
