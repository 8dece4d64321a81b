package collect

import (
	"bufio"
	"bytes"
	"encoding/json"
	"reflect"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot/intern"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/page"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/prune"
)

// decoder decodes the objects of one list.
type decoder func(page.Item) (runtime.Object, error)

// message is a built-in kind.
type message[T any] interface {
	*T
	runtime.Object
	metav1.Object
	intern.Message
}

// kindOf decodes a built-in kind without some fields.
func kindOf[T any, P message[T]](without prune.Fields) func(Options) (decoder, error) {
	return func(o Options) (decoder, error) {
		numbers, err := without.ForType(reflect.TypeFor[T]())
		if err != nil {
			return nil, err
		}
		pool := intern.NewPool()
		return func(item page.Item) (runtime.Object, error) {
			obj := P(new(T))
			if !item.Protobuf {
				o.numbering.look(item.Raw)
				return fromJSON(item.Raw, obj)
			}
			raw, err := numbers.Apply(item.Raw)
			if err != nil {
				return nil, err
			}
			o.numbering.look(raw)
			return obj, pool.Object(raw, obj)
		}, nil
	}
}

// alike is kindOf for objects of which most differ only in their metadata: what else they hold is shared.
func alike[T any, P message[T]](without prune.Fields) func(Options) (decoder, error) {
	return func(Options) (decoder, error) {
		numbers, err := without.ForType(reflect.TypeFor[T]())
		if err != nil {
			return nil, err
		}
		pool, seen := intern.NewPool(), map[string]T{}
		return func(item page.Item) (runtime.Object, error) {
			if !item.Protobuf {
				return fromJSON(item.Raw, P(new(T)))
			}
			raw, err := numbers.Apply(item.Raw)
			if err != nil {
				return nil, err
			}
			return intern.Alike[T, P](pool, raw, seen)
		}, nil
	}
}

// fromJSON decodes an object whose server, or one between, speaks no protobuf.
func fromJSON[P interface {
	runtime.Object
	metav1.Object
}](raw []byte, into P) (runtime.Object, error) {
	err := json.Unmarshal(raw, into)
	if annotations := into.GetAnnotations(); annotations[lastApplied] != "" {
		delete(annotations, lastApplied)
	}
	return into, err
}

// readBatchJobs decodes batch Jobs: those of other namespaces without what their pods do.
func readBatchJobs(o Options) (decoder, error) {
	whole, err := kindOf[batchv1.Job](nothingMore())(o)
	if err != nil {
		return nil, err
	}
	far, err := jobFields().ForType(reflect.TypeFor[batchv1.Job]())
	if err != nil {
		return nil, err
	}
	return func(item page.Item) (runtime.Object, error) {
		if namespace, err := namespaceOf(item); err != nil || !item.Protobuf || namespace == o.Namespace {
			return whole(item)
		}
		raw, err := far.Apply(item.Raw)
		if err != nil {
			return nil, err
		}
		return whole(page.Item{Raw: raw, Protobuf: true})
	}, nil
}

// namespaceOf is the namespace of an object in protobuf.
func namespaceOf(item page.Item) (namespace string, err error) {
	if !item.Protobuf {
		return "", nil
	}
	err = prune.Each(item.Raw, func(number int, _, content []byte) error {
		if number != objectMeta {
			return nil
		}
		return prune.Each(content, func(number int, _, content []byte) error {
			if number == metaNamespace {
				namespace = string(content)
			}
			return nil
		})
	})
	return namespace, err
}

// untyped decodes a kind that has no type here. The items of a list of a kind of Kubernetes itself do not say what they are.
func untyped(version string, kind schema.GroupKind) func(Options) (decoder, error) {
	gvk := kind.WithVersion(version)
	return func(o Options) (decoder, error) { return readUntyped(o, gvk) }
}

// trainingGroup is the API group of training jobs.
const trainingGroup = "kubeflow.org"

func readUntyped(o Options, gvk schema.GroupVersionKind) (decoder, error) {
	pool, far := intern.NewPool(), farJobFields()
	states := conditions{}
	var apiVersion, name any = gvk.GroupVersion().String(), gvk.Kind
	own := []byte(`"namespace":"` + o.Namespace + `"`)
	scanner := prune.NewScanner(bufio.NewReader(nil))
	return func(item page.Item) (runtime.Object, error) {
		raw := item.Raw
		near := bytes.Contains(raw, own)
		if !near {
			var err error
			scanner.Reset(raw)
			if raw, err = scanner.Value(far); err != nil {
				return nil, err
			}
		}
		o.numbering.look(raw)
		content, err := pool.JSON(raw)
		if err != nil {
			return nil, err
		}
		if o.Lean && !near && gvk.Group == trainingGroup {
			states.shorten(content)
		}
		content["apiVersion"], content["kind"] = apiVersion, name
		return &unstructured.Unstructured{Object: content}, nil
	}, nil
}
