package manifest

import (
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

	"github.com/gangctl/gangctl/pkg/cluster/document"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/submit/convert"
)

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

// typeOf is what objects of a kind are compared with; nil for those that are the API server's to judge.
func typeOf(gvk schema.GroupVersionKind) reflect.Type {
	switch {
	case convert.Reads(gvk):
		return reflect.TypeFor[convert.Known]()
	case gvk == schedulerplugins.GVK():
		return reflect.TypeFor[spv1alpha1.PodGroup]()
	case gvk == kubeflowv1.GroupVersion.WithKind(kubeflowv1.PyTorchJobKind):
		return reflect.TypeFor[kubeflowv1.PyTorchJob]()
	case gvk == kubeflowv1.GroupVersion.WithKind(kubeflowv1.MPIJobKind):
		return reflect.TypeFor[kubeflowv1.MPIJob]()
	case gvk == batchv1.SchemeGroupVersion.WithKind("Job"):
		return reflect.TypeFor[batchv1.Job]()
	}
	return nil
}

// check refuses values of the wrong type, and notes fields that the type does not have. API servers drop those of custom
// resources without a word unless they are asked to be strict; gangctl asks, so one that the server does not know is refused
// there, and one that it does know arrives.
func (m *Manifest) check(p place, u *unstructured.Unstructured) error {
	t := typeOf(u.GroupVersionKind())
	if t == nil {
		return nil
	}
	what := u.GetKind() + " " + nameOf(u)
	if p.node != nil {
		c := &comparison{}
		if problem := c.compare(p.node, t, ""); problem != nil {
			return p.Errorf(problem.line-1, "%s: %s", what, problem.text)
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

// plain is the text of a decoder's error without the words that only programmers know.
func plain(err error) string {
	text := err.Error()
	for _, prefix := range []string{"error unmarshaling JSON: ", "while decoding JSON: ", "yaml: ", "unmarshal errors:\n  ", "json: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return strings.ReplaceAll(text, "\n", " ")
}
