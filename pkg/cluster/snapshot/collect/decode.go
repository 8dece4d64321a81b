package collect

import (
	"context"
	"encoding/json"
	"reflect"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/gangctl/gangctl/pkg/cluster/kube"
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
	return func(Options) (decoder, error) {
		numbers, err := without.ForType(reflect.TypeFor[T]())
		if err != nil {
			return nil, err
		}
		pool := intern.NewPool()
		return func(item page.Item) (runtime.Object, error) {
			obj := P(new(T))
			if !item.Protobuf {
				return fromJSON(item.Raw, without, obj)
			}
			raw, err := numbers.Apply(item.Raw)
			if err != nil {
				return nil, err
			}
			return obj, pool.Object(raw, obj)
		}, nil
	}
}

// fromJSON decodes an object whose server, or a proxy before it, speaks no protobuf, without some fields.
func fromJSON[P interface {
	runtime.Object
	metav1.Object
}](raw []byte, without prune.Fields, into P) (runtime.Object, error) {
	raw, err := without.JSON(raw)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if err := utiljson.Unmarshal(raw, &content); err != nil {
		return nil, err
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, into)
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
	others, err := jobFields().ForType(reflect.TypeFor[batchv1.Job]())
	if err != nil {
		return nil, err
	}
	return func(item page.Item) (runtime.Object, error) {
		if namespace, err := namespaceOf(item); err != nil || !item.Protobuf || namespace == o.Namespace {
			return whole(item)
		}
		raw, err := others.Apply(item.Raw)
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

// untyped decodes a kind that has no type here. The items of a list of a kind of Kubernetes itself do not have their kind.
func untyped(version string, kind schema.GroupKind) func(Options) (decoder, error) {
	return func(o Options) (decoder, error) {
		without, others, pool := customFields(kind), otherNamespaceJobFields(), intern.NewPool()
		return func(item page.Item) (runtime.Object, error) {
			raw, err := without.JSON(item.Raw)
			if err != nil {
				return nil, err
			}
			if namespace, err := namespaceInJSON(raw); err != nil {
				return nil, err
			} else if o.Namespace == "" || namespace != o.Namespace {
				if raw, err = others.JSON(raw); err != nil {
					return nil, err
				}
			}
			u := &unstructured.Unstructured{Object: map[string]any{}}
			err = prune.EachKey(raw, func(key string, value []byte) (err error) {
				if key == "spec" || key == "status" {
					u.Object[key], err = pool.Tree(value)
					return err
				}
				var part any
				err = utiljson.Unmarshal(value, &part)
				u.Object[key] = part
				return err
			})
			u.SetGroupVersionKind(kind.WithVersion(version))
			return u, err
		}, nil
	}
}

// Objects reads the objects of a resource without a type here in a namespace, or in all if it is empty, that a label selector selects, and
// returns what they are read to, one by one. They are whole but for who set which field. An error is that of the API server or of read, as it
// is.
func Objects[T any](ctx context.Context, client *kube.Client, gvr schema.GroupVersionResource, namespace, selector string, read func(*unstructured.Unstructured) (T, error)) ([]T, error) {
	r, without := resource{gvr: gvr, labels: selector, accept: runtime.ContentTypeJSON}, nothingMore()
	all, _, err := readList(ctx, &collector{client: client}, r, namespace, func(item page.Item) (none T, err error) {
		raw, err := without.JSON(item.Raw)
		if err != nil {
			return none, err
		}
		u := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(raw, &u.Object); err != nil {
			return none, err
		}
		return read(u)
	})
	return all, err
}

// namespaceInJSON is the namespace of an object in JSON.
func namespaceInJSON(raw []byte) (namespace string, err error) {
	err = prune.EachKey(raw, func(key string, value []byte) error {
		if key != "metadata" {
			return nil
		}
		return prune.EachKey(value, func(key string, value []byte) error {
			if key != "namespace" {
				return nil
			}
			return json.Unmarshal(value, &namespace)
		})
	})
	return namespace, err
}
