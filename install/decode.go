package install

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Decode returns the objects of YAML documents, in their order.
func Decode(manifests ...[]byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, manifest := range manifests {
		reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
		for {
			document, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("read manifest: %w", err)
			}
			object := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
				return nil, fmt.Errorf("parse manifest: %w", err)
			}
			if len(object.Object) > 0 {
				objects = append(objects, object)
			}
		}
	}
	return objects, nil
}

// Edit lets change work on a typed object, and takes over what it did. A field
// that the type does not have is an error.
func Edit[T any](object *unstructured.Unstructured, change func(*T)) error {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
		return fmt.Errorf("read %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	change(typed)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return fmt.Errorf("write %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	// What only API servers write.
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(content, "spec", "template", "metadata", "creationTimestamp")
	object.Object = content
	return nil
}
