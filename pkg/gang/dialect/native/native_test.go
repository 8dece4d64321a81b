package native

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The mode of disruption is a word in v1alpha2, and a union in later versions.
func TestDisruptionMode(t *testing.T) {
	for spec, want := range map[string]bool{
		"{disruptionMode: PodGroup}":      true,
		"{disruptionMode: Pod}":           false,
		"{disruptionMode: {all: {}}}":     true,
		"{disruptionMode: {single: {}}}":  false,
		"{disruptionMode: [all]}":         false,
		"{disruptionMode: null}":          false,
		"{schedulingPolicy: {basic: {}}}": false,
	} {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte("apiVersion: scheduling.k8s.io/v1alpha2\nkind: PodGroup\nmetadata: {name: g, namespace: team}\nspec: "+spec), &u.Object); err != nil {
			t.Fatal(err)
		}
		if d, err := Decode(u); err != nil || d.Together != want {
			t.Errorf("%s: %t, %v", spec, d.Together, err)
		}
	}
}
