package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

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
	dropEmptyTimes(u.Object)
	return dropped
}

// dropEmptyTimes removes the empty creationTimestamp that generators leave in the metadata of pod templates, too: an API server
// that is asked to be strict refuses it there, as its schema does not know it.
func dropEmptyTimes(value any) {
	switch v := value.(type) {
	case map[string]any:
		if at, found := v["creationTimestamp"]; found && at == nil {
			delete(v, "creationTimestamp")
		}
		for _, item := range v {
			dropEmptyTimes(item)
		}
	case []any:
		for _, item := range v {
			dropEmptyTimes(item)
		}
	}
}
