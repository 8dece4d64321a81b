// Package manifest reads a job from a file as users keep them: one TFJob (kubeflow.org/v1), and the PodGroup
// (scheduling.x-k8s.io/v1alpha1) of its gang if the file has one. Whatever is not understood to the last field is refused, with
// the place where it stands.
package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	spv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/gangctl/gangctl/pkg/document"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
)

// Manifest is what a file holds.
type Manifest struct {
	// Job is the TFJob as it was written, without what only API servers write.
	Job *unstructured.Unstructured
	// PodGroup is nil if the file has none.
	PodGroup *unstructured.Unstructured
	// Dropped are the fields that only API servers write and that the file had, as an object read from a cluster has them.
	Dropped []string
}

// ErrUnsupported is the cause of an error about a kind or version that cannot be submitted.
var ErrUnsupported = errors.New("gangctl submits one TFJob of kubeflow.org/v1, and a PodGroup of scheduling.x-k8s.io/v1alpha1 if the file has one")

// Parse reads a stream of YAML or JSON. Errors name the document, the line, the object and the field.
func Parse(data []byte) (*Manifest, error) {
	docs, err := document.Split(data)
	if err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		return nil, errors.New("the file holds no objects")
	}
	m := &Manifest{}
	for _, d := range docs {
		if err := m.add(d); err != nil {
			return nil, err
		}
	}
	if m.Job == nil {
		return nil, fmt.Errorf("the file holds no TFJob: %w", ErrUnsupported)
	}
	slices.Sort(m.Dropped)
	m.Dropped = slices.Compact(m.Dropped)
	return m, nil
}

// add takes one document.
func (m *Manifest) add(d document.Document) error {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(d.JSON); err != nil {
		return d.Errorf(0, "no Kubernetes object: %s", plain(err))
	}
	var into runtime.Object
	var slot **unstructured.Unstructured
	switch u.GroupVersionKind() {
	case tfjob.GVK():
		into, slot = &kubeflowv1.TFJob{}, &m.Job
	case schedulerplugins.GVK():
		into, slot = &spv1alpha1.PodGroup{}, &m.PodGroup
	default:
		return d.Errorf(0, "%s cannot be submitted: %w", kindOf(u.GroupVersionKind()), ErrUnsupported)
	}
	if *slot != nil {
		return d.Errorf(0, "a second %s, %s: %w", u.GetKind(), nameOf(u), ErrUnsupported)
	}
	if err := strict(d, u, into); err != nil {
		return err
	}
	if u.GetName() == "" && u.GetGenerateName() == "" {
		return d.Errorf(0, "%s has no metadata.name", u.GetKind())
	}
	m.Dropped = append(m.Dropped, drop(u)...)
	*slot = u
	return nil
}

// kindOf reads like `TFJob of kubeflow.org/v1beta1`.
func kindOf(gvk schema.GroupVersionKind) string {
	return fmt.Sprintf("%s of %s", gvk.Kind, gvk.GroupVersion())
}

func nameOf(u *unstructured.Unstructured) string {
	if u.GetName() == "" {
		return u.GetGenerateName()
	}
	return u.GetName()
}

// serverFields are written by API servers only; a create that carries them is refused or misleads.
func serverFields() [][]string {
	return [][]string{{"status"}, {"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "generation"},
		{"metadata", "creationTimestamp"}, {"metadata", "deletionTimestamp"}, {"metadata", "deletionGracePeriodSeconds"},
		{"metadata", "managedFields"}, {"metadata", "selfLink"}}
}

// drop removes what only API servers write, and says what that was. An empty creationTimestamp or status, as generators leave
// them behind, is not worth a word.
func drop(u *unstructured.Unstructured) []string {
	var dropped []string
	for _, path := range serverFields() {
		value, found, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
		if !found {
			continue
		}
		unstructured.RemoveNestedField(u.Object, path...)
		if m, isMap := value.(map[string]any); value != nil && !(isMap && len(m) == 0) {
			dropped = append(dropped, strings.Join(path, "."))
		}
	}
	return dropped
}
