package gang

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// DecodeGroup reads what the group objects of most dialects have in common: metadata, spec.minMember, spec.minResources,
// spec.queue, spec.priorityClassName, spec.minTaskMember, status.phase and status.conditions, and the annotations of [TopologyOf]. Errors
// name the object and the field.
func DecodeGroup(dialect Dialect, u *unstructured.Unstructured) (Declaration, error) {
	d := Declaration{
		Key:  Key{Dialect: dialect, Namespace: u.GetNamespace(), Name: u.GetName()},
		Kind: u.GroupVersionKind(), UID: u.GetUID(), Created: u.GetCreationTimestamp().Time,
	}
	if owner := metav1.GetControllerOf(u); owner != nil {
		d.Owner = owner.UID
	}
	spec := Fields{Object: u}
	d.MinMember = max(1, spec.Int32("spec", "minMember"))
	d.Queue = spec.String("spec", "queue")
	d.PriorityClass = spec.String("spec", "priorityClassName")
	d.MinResources = spec.Resources("spec", "minResources")
	d.Phase = spec.String("status", "phase")
	if mins := spec.Map("spec", "minTaskMember"); len(mins) > 0 && spec.FewRoles(len(mins), "spec", "minTaskMember") {
		d.RoleMin = map[string]int32{}
		for role := range mins {
			d.RoleMin[strings.ToLower(role)] = spec.Int32("spec", "minTaskMember", role)
		}
	}
	d.Conditions = spec.Conditions("Unschedulable", "True")
	topology, err := TopologyOf(u.GetAnnotations())
	spec.note(err, []string{"metadata", "annotations"})
	d.SetTopology(topology, TopologyAnnotation)
	return d, spec.Err
}

// MetaOf is the metadata of an object that has no type of its own.
func MetaOf(u *unstructured.Unstructured) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(), Generation: u.GetGeneration(),
		CreationTimestamp: u.GetCreationTimestamp(), DeletionTimestamp: u.GetDeletionTimestamp(), Finalizers: u.GetFinalizers(),
		Labels: u.GetLabels(), Annotations: u.GetAnnotations(), OwnerReferences: u.GetOwnerReferences(),
	}
}

// SetTopology replaces the rule for all members by another one, and those for parts by others, unless there are none: in order of increasing precedence.
func (d *Declaration) SetTopology(t Topology, from TopologySource) {
	if t.OfAll() {
		d.TopologyFrom = from
	}
	d.Topology = t.Or(d.Topology)
}

// Fields reads optional fields of an object; the first field of the wrong type is kept in Err.
type Fields struct {
	Object *unstructured.Unstructured
	Err    error

	part *part
}

// part is an object within one that is read.
type part struct {
	of      *Fields
	path    []string
	content map[string]any
}

// Of reads the fields of an object within this one, which is at a path. What is wrong with them is kept here.
func (f *Fields) Of(content map[string]any, path ...string) *Fields {
	return &Fields{Object: f.Object, part: &part{of: f, path: path, content: content}}
}

func (f *Fields) content() map[string]any {
	if f.part != nil {
		return f.part.content
	}
	return f.Object.Object
}

// Note keeps what is wrong with a field, unless something was wrong before.
func (f *Fields) Note(err error, path ...string) { f.note(err, path) }

func (f *Fields) note(err error, path []string) {
	if f.part != nil {
		f.part.of.note(err, slices.Concat(f.part.path, path))
		return
	}
	if err != nil && f.Err == nil {
		f.Err = fmt.Errorf("decode %s %s/%s: %v: %w", f.Object.GetKind(), f.Object.GetNamespace(), f.Object.GetName(), path, err)
	}
}

// String returns a text field, "" if it is absent.
func (f *Fields) String(path ...string) string {
	s, _, err := unstructured.NestedString(f.content(), path...)
	f.note(err, path)
	return s
}

// Bool returns a boolean field, false if it is absent.
func (f *Fields) Bool(path ...string) bool {
	b, _, err := unstructured.NestedBool(f.content(), path...)
	f.note(err, path)
	return b
}

// Int32 returns a number, 0 if it is absent.
func (f *Fields) Int32(path ...string) int32 {
	value, _, err := unstructured.NestedFieldNoCopy(f.content(), path...)
	var number float64 // which holds every number of 32 bits
	switch n := value.(type) {
	case int64:
		number = float64(n)
	case float64: // from a decoder that knows no whole numbers
		number = n
	case nil:
	default:
		err = fmt.Errorf("want a number, got %T", value)
	}
	if number != math.Trunc(number) || number < math.MinInt32 || number > math.MaxInt32 {
		number, err = 0, fmt.Errorf("want a whole number of 32 bits, got %v", value)
	}
	f.note(err, path)
	return int32(number)
}

// Seconds returns a number of seconds as a duration, 0 if it is absent; see [Seconds].
func (f *Fields) Seconds(path ...string) time.Duration {
	value, _, err := unstructured.NestedFieldNoCopy(f.content(), path...)
	f.note(err, path)
	switch n := value.(type) {
	case int64:
		return Seconds(n)
	case float64: // from a decoder that knows no whole numbers
		return Seconds(int64(min(max(n, -float64(maxSeconds)), float64(maxSeconds))))
	case nil:
	default:
		f.note(fmt.Errorf("want a number, got %T", value), path)
	}
	return 0
}

// maxSeconds is the largest number of seconds that a duration holds.
const maxSeconds = int64(math.MaxInt64 / time.Second)

// Seconds is a number of seconds as a duration. API servers set no maximum for deadlines: what a duration does not hold is the longest, and
// not one that has passed, or comes soon.
func Seconds(n int64) time.Duration {
	return time.Duration(min(max(n, -maxSeconds), maxSeconds)) * time.Second
}

// Map returns an object, nil if it is absent. The caller must not change it.
func (f *Fields) Map(path ...string) map[string]any {
	value, ok, err := unstructured.NestedFieldNoCopy(f.content(), path...)
	f.note(err, path)
	if !ok || value == nil {
		return nil
	}
	m, isMap := value.(map[string]any)
	if !isMap {
		f.note(fmt.Errorf("want an object, got %T", value), path)
	}
	return m
}

// List returns the objects of a list, nil if it is absent. The caller must not change them.
func (f *Fields) List(path ...string) []map[string]any {
	value, ok, err := unstructured.NestedFieldNoCopy(f.content(), path...)
	f.note(err, path)
	if !ok || value == nil {
		return nil
	}
	items, isList := value.([]any)
	if !isList {
		f.note(fmt.Errorf("want a list, got %T", value), path)
	}
	var list []map[string]any
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			list = append(list, m)
		}
	}
	return list
}

// Has reports whether there is a field, with a value.
func (f *Fields) Has(path ...string) bool {
	value, _, err := unstructured.NestedFieldNoCopy(f.content(), path...)
	return err == nil && value != nil
}

// Strings returns a list of texts, nil if it is absent.
func (f *Fields) Strings(path ...string) []string {
	list, _, err := unstructured.NestedStringSlice(f.content(), path...)
	f.note(err, path)
	return list
}

// Selector returns a label selector as text, "" if it is absent: both select all.
func (f *Fields) Selector(path ...string) string {
	fields := f.Map(path...)
	if fields == nil {
		return ""
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector); err != nil {
		f.note(err, path)
		return ""
	}
	parsed, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		f.note(err, path)
		return ""
	}
	return parsed.String()
}

// FewRoles reports whether a field has minimums of so few roles that they can be gone through with every event of a member. More are an error.
func (f *Fields) FewRoles(n int, path ...string) bool {
	if n <= maxRoleMins {
		return true
	}
	f.note(fmt.Errorf("%d roles have a minimum, and no more than %d are read", n, maxRoleMins), path)
	return false
}

// Resources returns a list of quantities, nil if it is absent.
func (f *Fields) Resources(path ...string) corev1.ResourceList {
	list, err := quantities(f.Map(path...))
	f.note(err, path)
	return list
}

// Topology returns what was read from a field, nothing if no label can be meant; that is an error.
func (f *Fields) Topology(t Topology, path ...string) Topology {
	if err := t.Validate(); err != nil {
		f.note(err, path)
		return Topology{}
	}
	return t
}

// Conditions are the reasons and messages of the conditions of a type and status.
func (f *Fields) Conditions(kind, status string) []Condition {
	var conditions []Condition
	for _, c := range f.List("status", "conditions") {
		if c["type"] == kind && c["status"] == status {
			conditions = append(conditions, ConditionOf(c))
		}
	}
	return conditions
}

// ConditionOf reads reason, message and lastTransitionTime of a condition.
func ConditionOf(condition map[string]any) Condition {
	w := Condition{}
	w.Reason, _ = condition["reason"].(string)
	w.Message, _ = condition["message"].(string)
	if at, ok := condition["lastTransitionTime"].(string); ok {
		w.At, _ = time.Parse(time.RFC3339, at) // an unreadable time is an unknown one
	}
	return w
}

// ConditionIn is a condition of an object, and its status; both are empty if there is none of the type.
func ConditionIn(u *unstructured.Unstructured, kind string) (Condition, string) {
	f := Fields{Object: u}
	for _, cond := range f.List("status", "conditions") {
		if cond["type"] == kind {
			status, _ := cond["status"].(string)
			return ConditionOf(cond), status
		}
	}
	return Condition{}, ""
}

// IsTrue reports whether a condition of an object is true.
func IsTrue(u *unstructured.Unstructured, condition string) bool {
	_, status := ConditionIn(u, condition)
	return status == "True"
}

// quantities reads a resource list from JSON, where a quantity may be a number.
func quantities(values map[string]any) (corev1.ResourceList, error) {
	if len(values) == 0 {
		return nil, nil
	}
	list := corev1.ResourceList{}
	for name, value := range values {
		q, err := resource.ParseQuantity(fmt.Sprint(value))
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", name, fmt.Sprint(value), err)
		}
		list[corev1.ResourceName(name)] = q
	}
	return list, nil
}
