package render

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Unstructured is an object as it goes over the wire and to a file: without its status, which is not ours to write, and
// without the empty values that Go structs leave behind (`resources: {}`, `creationTimestamp: null`).
func Unstructured(obj runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("convert %T: %w", obj, err)
	}
	delete(content, "status")
	prune(content)
	return &unstructured.Unstructured{Object: content}, nil
}

// prune removes nulls and empty maps at any depth, but no empty string and no zero: those may have been asked for. An empty
// emptyDir is what says of which kind a volume is.
func prune(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			prune(item)
			if m, ok := item.(map[string]any); item == nil || (ok && len(m) == 0 && key != "emptyDir") {
				delete(v, key)
			}
		}
	case []any:
		for _, item := range v {
			prune(item)
		}
	}
}
