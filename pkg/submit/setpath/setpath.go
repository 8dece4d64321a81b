package setpath

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/submit/jsontype"
)

// Apply returns a copy of an object with every assignment made, in order. The object is as JSON has it; kind is a value of its
// Go type, or nil for a kind that has none here: then the object itself shows what is a list, a map or a text, and the API server
// knows the fields. Only the spec, labels and annotations can be set: the rest of an object is not the user's to write. Errors name the
// assignment and what is wrong with it.
func Apply(object map[string]any, kind any, assignments ...string) (map[string]any, error) {
	changed := runtime.DeepCopyJSON(object)
	seen := map[string]bool{}
	for _, text := range assignments {
		a, err := parse(text)
		if err != nil {
			return nil, err
		}
		path := a.Path.String()
		if seen[path] {
			return nil, fmt.Errorf("%s is given twice", path)
		}
		seen[path] = true
		if err := writable(a.Path); err != nil {
			return nil, err
		}
		w, t := walk{a: a}, reflect.TypeOf(kind)
		if t == nil {
			t = reflect.TypeFor[untyped]()
		}
		result, err := w.set(changed, t, 0)
		if err != nil {
			return nil, err
		}
		changed = result.(map[string]any) //nolint:errcheck // a path has a key first, and what has keys stays a map
	}
	return changed, nil
}

// Check is what is wrong with assignments of whatever object they are made to: how they are written, and that others write what they set.
func Check(assignments ...string) error {
	for _, text := range assignments {
		a, err := parse(text)
		if err == nil {
			err = writable(a.Path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writable refuses paths to what others write.
func writable(p Path) error {
	top, second := p[0].Key, ""
	if len(p) > 1 {
		second = p[1].Key
	}
	switch {
	case top == "spec" && len(p) > 1, top == "metadata" && (second == "labels" || second == "annotations") && len(p) > 2:
		return nil
	case top == "metadata" && second == "name":
		return fmt.Errorf("%s: the name has a flag of its own, --name", p)
	case top == "metadata" && second == "namespace":
		return fmt.Errorf("%s: the namespace has a flag of its own, -n", p)
	case top == "status":
		return fmt.Errorf("%s: the status is the controller's to write", p)
	}
	return fmt.Errorf("%s: only fields of spec, metadata.labels.KEY and metadata.annotations.KEY can be set", p)
}

// untyped is an object of a kind of which the spec is not known here.
type untyped struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     any               `json:"spec"`
}

// unknown is the type of what is not known here.
var unknown = reflect.TypeFor[any]()

// walk follows one path.
type walk struct{ a Assignment }

// errorf names the path as far as the step before i.
func (w walk) errorf(i int, format string, args ...any) error {
	return fmt.Errorf("%s: %w", w.a.Path[:i], fmt.Errorf(format, args...))
}

// set returns value, which is of a type and stands before step i, with the rest of the path set in it. What is not there is nil.
func (w walk) set(value any, t reflect.Type, i int) (any, error) {
	t = jsontype.Elem(t)
	if i == len(w.a.Path) {
		if _, text := value.(string); t == unknown && text {
			return w.a.Value, nil
		}
		return w.parse(t)
	}
	step := w.a.Path[i]
	if _, list := value.([]any); t == unknown && (list || step.Index >= 0) {
		return w.item(value, reflect.SliceOf(unknown), i)
	}
	switch {
	case t == unknown:
	case jsontype.DecodesItself(t), t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return nil, w.errorf(i, "is one value: it has no fields")
	case t.Kind() == reflect.Slice:
		return w.item(value, t, i)
	case t.Kind() != reflect.Struct && t.Kind() != reflect.Map:
		return nil, w.errorf(i, "is one value: it has no fields")
	case step.Index >= 0:
		return nil, w.errorf(i, "is no list: it has no item %d", step.Index)
	}
	fields, ok := value.(map[string]any)
	if !ok && value != nil {
		return nil, w.errorf(i, "is no map in the object")
	}
	field, err := w.typeOf(step.Key, fields, t, i)
	if err != nil {
		return nil, err
	}
	old, there := fields[step.Key]
	if w.a.Remove {
		if !there {
			return nil, w.errorf(i+1, "is not there, so it cannot be taken away")
		}
		if i+1 == len(w.a.Path) {
			delete(fields, step.Key)
			return fields, nil
		}
	}
	set, err := w.set(old, field, i+1)
	if err != nil {
		return nil, err
	}
	if fields == nil {
		fields = map[string]any{}
	}
	fields[step.Key] = set
	return fields, nil
}

// typeOf is the type of a field of a struct, or of an entry of a map. An entry that holds fields of its own must be there already,
// or be given as a whole: half a role of a job is of no use.
func (w walk) typeOf(key string, fields map[string]any, t reflect.Type, i int) (reflect.Type, error) {
	if t == unknown {
		return unknown, nil
	}
	if t.Kind() == reflect.Map {
		_, there := fields[key]
		if entry := jsontype.Elem(t.Elem()); !there && i+1 < len(w.a.Path) && entry.Kind() == reflect.Struct {
			has := "nothing"
			if len(fields) > 0 {
				has = strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
			}
			return nil, w.errorf(i+1, "is not there: %s has %s", w.a.Path[:i], has)
		}
		return t.Elem(), nil
	}
	known, names := jsontype.Fields(t)
	if field, ok := known[key]; ok {
		return field, nil
	}
	for _, name := range names {
		if strings.EqualFold(name, key) {
			return nil, w.errorf(i+1, "there is no such field; did you mean %s?", name)
		}
	}
	if name := suggest.Nearest(key, names); name != "" {
		return nil, w.errorf(i+1, "there is no such field; did you mean %s?", name)
	}
	slices.Sort(names)
	return nil, w.errorf(i+1, "there is no such field; there are %s", strings.Join(names, ", "))
}

// item is set for a list. The index behind the last item adds one.
func (w walk) item(value any, t reflect.Type, i int) (any, error) {
	step := w.a.Path[i]
	items, ok := value.([]any)
	switch {
	case !ok && value != nil:
		return nil, w.errorf(i, "is no list in the object")
	case step.Index < 0:
		return nil, w.errorf(i, "is a list: name the item, such as %s[0].%s", w.a.Path[:i], step.Key)
	case step.Index > len(items), w.a.Remove && step.Index == len(items):
		return nil, w.errorf(i+1, "the list has %d items, counted from 0", len(items))
	case w.a.Remove && i+1 == len(w.a.Path):
		return slices.Delete(items, step.Index, step.Index+1), nil
	}
	var old any
	if step.Index < len(items) {
		old = items[step.Index]
	}
	set, err := w.set(old, t.Elem(), i+1)
	if err != nil {
		return nil, err
	}
	if step.Index == len(items) {
		return append(items, set), nil
	}
	items[step.Index] = set
	return items, nil
}
