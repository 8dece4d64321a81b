package jsontype

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Fields of embedded structs are in the document where those of the struct are, unless they have a name of their own.
func TestFields(t *testing.T) {
	type embedded struct {
		Inner int `json:"inner"`
	}
	type object struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		*embedded
		Hidden  string  `json:"-"`
		private string  //nolint:unused // what has no name in JSON is no field
		Spec    *string `json:"spec,omitempty"`
	}
	fields, names := Fields(reflect.TypeFor[object]())
	if want := []string{"kind", "apiVersion", "metadata", "inner", "spec"}; !slices.Equal(names, want) || len(fields) != len(want) {
		t.Errorf("got %q, %v", names, fields)
	}
	if fields["spec"] != reflect.TypeFor[*string]() || Elem(fields["spec"]) != reflect.TypeFor[string]() {
		t.Errorf("spec is %v", fields["spec"])
	}
}

func TestDecodesItself(t *testing.T) {
	for _, tt := range []struct {
		of   reflect.Type
		want bool
	}{
		{reflect.TypeFor[resource.Quantity](), true}, {reflect.TypeFor[metav1.Time](), true}, {reflect.TypeFor[intstr.IntOrString](), true},
		{reflect.TypeFor[corev1.PodSpec](), false}, {reflect.TypeFor[corev1.RestartPolicy](), false}, {reflect.TypeFor[int32](), false},
	} {
		if got := DecodesItself(tt.of); got != tt.want {
			t.Errorf("%v: got %v", tt.of, got)
		}
	}
}
