package apply

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// contextLines is how much of what stays the same is shown around a change.
const contextLines = 3

// Diff is a unified diff of the object before and after, in YAML and without what servers keep for themselves; empty if nothing
// changes. Labels of the object that every version changes can be left out.
func (r Result) Diff(without ...string) (string, error) {
	before, err := text(r.Before, without)
	if err != nil {
		return "", err
	}
	after, err := text(r.After, without)
	if err != nil {
		return "", err
	}
	if before == after {
		return "", nil
	}
	object := r.Object
	out, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: slices.Collect(strings.Lines(before)), B: slices.Collect(strings.Lines(after)),
		FromFile: "cluster/" + Name(object), ToFile: "gangctl/" + Name(object), Context: contextLines,
	})
	if err != nil {
		return "", fmt.Errorf("compare %s: %w", Describe(object), err)
	}
	return out, nil
}

func text(object *unstructured.Unstructured, without []string) (string, error) {
	if object == nil {
		return "", nil
	}
	shown := Content(object)
	for _, label := range without {
		unstructured.RemoveNestedField(shown, "metadata", "labels", label)
	}
	data, err := yaml.Marshal(shown)
	if err != nil {
		return "", fmt.Errorf("write %s: %w", Describe(object), err)
	}
	return string(data), nil
}

// Same reports whether what people and programs write of an object is the same.
func Same(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(Content(a), Content(b))
}

// Content is an object without what servers keep for themselves.
func Content(object *unstructured.Unstructured) map[string]any {
	copied := object.DeepCopy()
	delete(copied.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "deletionTimestamp"} {
		unstructured.RemoveNestedField(copied.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(copied.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
	return copied.Object
}
