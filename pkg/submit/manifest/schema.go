package manifest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	yamlv3 "go.yaml.in/yaml/v3"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	spv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/document"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
	"github.com/gangctl/gangctl/pkg/submit/convert"
	"github.com/gangctl/gangctl/pkg/submit/jsontype"
	"github.com/gangctl/gangctl/pkg/submit/redact"
)

// problem is one mistake in a document, and the line of the document on which it stands, from 1.
type problem struct {
	line int
	text string
}

// tree is a document with its lines; nil if it is JSON that is no YAML.
func tree(d document.Document) *yamlv3.Node {
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(d.Text, &root); err != nil || len(root.Content) == 0 {
		return nil
	}
	return root.Content[0]
}

// twice finds the first key that comes again in its map; nil if none does.
func twice(node *yamlv3.Node, path string) *problem {
	switch node.Kind {
	case yamlv3.MappingNode:
		seen := map[string]bool{}
		return pairs(node, path, func(key, value *yamlv3.Node, at string) *problem {
			if seen[key.Value] {
				return &problem{key.Line, at + " is given twice"}
			}
			seen[key.Value] = true
			return twice(value, at)
		})
	case yamlv3.SequenceNode:
		for i, item := range node.Content {
			if p := twice(item, fmt.Sprintf("%s[%d]", path, i)); p != nil {
				return p
			}
		}
	default: // a value
	}
	return nil
}

// comparison walks a document along a type.
type comparison struct {
	// unknown are the fields that the type does not have.
	unknown []problem
}

// compare finds the first value that does not fit; nil if all do.
func (c *comparison) compare(node *yamlv3.Node, t reflect.Type, path string) *problem {
	if node.Kind == yamlv3.AliasNode {
		node = node.Alias
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case node.Tag == "!!null":
		return nil
	case jsontype.DecodesItself(t):
		return leaf(node, t, path)
	case t.Kind() == reflect.Struct:
		return c.fields(node, t, path)
	case t.Kind() == reflect.Map:
		return c.entries(node, t, path)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return c.items(node, t, path)
	}
	return leaf(node, t, path)
}

func (c *comparison) fields(node *yamlv3.Node, t reflect.Type, path string) *problem {
	if node.Kind != yamlv3.MappingNode {
		return wrong(node, path, "must be a map of fields")
	}
	known, names := jsontype.Fields(t)
	return pairs(node, path, func(key, value *yamlv3.Node, at string) *problem {
		field, ok := known[key.Value]
		if ok {
			return c.compare(value, field, at)
		}
		text := at
		if nearest := suggest.Nearest(key.Value, names); nearest != "" {
			text += fmt.Sprintf(" (did you mean %s?)", nearest)
		}
		c.unknown = append(c.unknown, problem{key.Line, text})
		return nil
	})
}

func (c *comparison) entries(node *yamlv3.Node, t reflect.Type, path string) *problem {
	if node.Kind != yamlv3.MappingNode {
		return wrong(node, path, "must be a map")
	}
	return pairs(node, path, func(_, value *yamlv3.Node, at string) *problem { return c.compare(value, t.Elem(), at) })
}

// pairs visits the keys of a map in their order.
func pairs(node *yamlv3.Node, path string, visit func(key, value *yamlv3.Node, at string) *problem) *problem {
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Tag == "!!merge" {
			continue
		}
		if p := visit(key, value, strings.TrimPrefix(path+"."+key.Value, ".")); p != nil {
			return p
		}
	}
	return nil
}

func (c *comparison) items(node *yamlv3.Node, t reflect.Type, path string) *problem {
	if node.Kind != yamlv3.SequenceNode {
		return wrong(node, path, "must be a list")
	}
	for i, item := range node.Content {
		if p := c.compare(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); p != nil {
			return p
		}
	}
	return nil
}

// leaf decodes one value as the API machinery does.
func leaf(node *yamlv3.Node, t reflect.Type, path string) *problem {
	text, err := yamlv3.Marshal(node)
	if err != nil {
		return nil
	}
	// Not by way of yaml.Unmarshal, which converts a number to a string where the type has one.
	raw, err := yaml.YAMLToJSON(text)
	if err == nil {
		err = json.Unmarshal(raw, reflect.New(t).Interface())
	}
	if err == nil {
		return nil
	}
	switch t.Kind() {
	case reflect.String:
		if node.Kind != yamlv3.ScalarNode {
			return wrong(node, path, "must be a text")
		}
		return wrong(node, path, "must be a text: put it in quotes")
	case reflect.Bool:
		return wrong(node, path, "must be true or false")
	case reflect.Int, reflect.Int32, reflect.Int64:
		return wrong(node, path, "must be a whole number")
	default:
		return wrong(node, path, plain(err))
	}
}

func wrong(node *yamlv3.Node, path, rule string) *problem {
	if node.Kind == yamlv3.ScalarNode {
		return &problem{node.Line, fmt.Sprintf("%s: %q: %s", path, redact.Field(path, node.Value), rule)}
	}
	return &problem{node.Line, path + ": " + rule}
}

// place is where an object stands.
type place struct {
	document.Document
	// node is the object with its lines; nil for JSON that is no YAML.
	node *yamlv3.Node
}

// item is the place of an item of a list.
func (p place) item(i int) place {
	items := value(p.node, "items")
	p.node = nil
	if items != nil && i < len(items.Content) {
		p.node = items.Content[i]
	}
	return p
}

// value is that of a key of a map; nil without one.
func value(node *yamlv3.Node, key string) *yamlv3.Node {
	for i := 0; node != nil && i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

// errorf names the place, and the line on which the object begins.
func (p place) errorf(format string, args ...any) error {
	offset := 0
	if p.node != nil && p.node.Line > 0 {
		offset = p.node.Line - 1
	}
	return p.Errorf(offset, format, args...)
}

// refuseTwice refuses a key that comes again in its map, whatever the kind: the server would not see it.
func (p place) refuseTwice(u *unstructured.Unstructured) error {
	if p.node == nil {
		return nil
	}
	if problem := twice(p.node, ""); problem != nil {
		return p.Errorf(problem.line-1, "%s %s: %s", u.GetKind(), nameOf(u), problem.text)
	}
	return nil
}

// typeOf is the Go type that objects of a kind are compared with; nil for those that are the API server's to judge. Of a partial type only the values
// are judged: the kind has further fields.
func typeOf(gvk schema.GroupVersionKind) (t reflect.Type, partial bool) {
	switch {
	case gvk.GroupKind() == jobset.Reader().GroupKind:
		return reflect.TypeFor[jobset.Written](), true
	case gvk.GroupKind() == leaderworkerset.Reader().GroupKind:
		return reflect.TypeFor[leaderworkerset.Written](), true
	case gvk.GroupKind() == ray.JobReader().GroupKind:
		return reflect.TypeFor[ray.WrittenJob](), true
	case gvk.GroupKind() == ray.ClusterReader().GroupKind:
		return reflect.TypeFor[ray.WrittenCluster](), true
	case gvk.GroupKind() == trainjob.Reader().GroupKind:
		return reflect.TypeFor[trainjob.Written](), true
	case convert.Reads(gvk):
		return reflect.TypeFor[convert.Known](), false
	case gvk == schedulerplugins.GVK():
		return reflect.TypeFor[spv1alpha1.PodGroup](), false
	case gvk == kubeflowv1.GroupVersion.WithKind(kubeflowv1.PyTorchJobKind):
		return reflect.TypeFor[kubeflowv1.PyTorchJob](), false
	case gvk == kubeflowv1.GroupVersion.WithKind(kubeflowv1.MPIJobKind):
		return reflect.TypeFor[kubeflowv1.MPIJob](), false
	case gvk == kubeflowv1.GroupVersion.WithKind(kubeflowv1.XGBoostJobKind):
		return reflect.TypeFor[kubeflowv1.XGBoostJob](), false
	case gvk == kubeflowv1.GroupVersion.WithKind(kubeflowv1.PaddleJobKind):
		return reflect.TypeFor[kubeflowv1.PaddleJob](), false
	case gvk == kubeflowv1.GroupVersion.WithKind(kubeflowv1.JAXJobKind):
		return reflect.TypeFor[kubeflowv1.JAXJob](), false
	case gvk == batchv1.SchemeGroupVersion.WithKind("Job"):
		return reflect.TypeFor[batchv1.Job](), false
	}
	return nil, false
}

// check refuses values of the wrong type, and notes fields that the type does not have. API servers drop those of custom
// resources silently unless fieldValidation is Strict, which gangctl sets: one that the server does not know is refused
// there, and one that it does know arrives.
func (m *Manifest) check(p place, u *unstructured.Unstructured) error {
	t, partial := typeOf(u.GroupVersionKind())
	if t == nil {
		return nil
	}
	what := u.GetKind() + " " + nameOf(u)
	if p.node != nil {
		c := &comparison{}
		if problem := c.compare(p.node, t, ""); problem != nil {
			return p.Errorf(problem.line-1, "%s: %s", what, problem.text)
		}
		if partial {
			c.unknown = nil
		}
		for _, field := range c.unknown {
			m.Notes = append(m.Notes, fmt.Sprintf("%v: gangctl does not know this field, and leaves it to the API server", p.Errorf(field.line-1, "%s: %s", what, field.text)))
		}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, reflect.New(t).Interface()); err != nil {
		return p.errorf("%s: %s", what, plain(err))
	}
	return nil
}

// plain is the text of a decoder's error without the names of Go.
func plain(err error) string {
	text := err.Error()
	for _, prefix := range []string{"error unmarshaling JSON: ", "while decoding JSON: ", "yaml: ", "unmarshal errors:\n  ", "json: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return strings.ReplaceAll(text, "\n", " ")
}
