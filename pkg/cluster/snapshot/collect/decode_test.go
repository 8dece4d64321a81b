package collect

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot/page"
)

// An API server leaves apiVersion and kind out of the items of its own lists. A snapshot that did so could not be read again, and
// the object would not be found by its kind.
func TestUntypedItemsAreOfTheirKind(t *testing.T) {
	kind := schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}
	decode, err := untyped("v1", kind)(Options{Namespace: "team"})
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{
		`{"metadata":{"name":"w"},"webhooks":[]}`,
		`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"w"}}`,
	} {
		obj, err := decode(page.Item{Raw: []byte(raw)})
		if err != nil {
			t.Fatal(err)
		}
		u, ok := obj.(*unstructured.Unstructured)
		if !ok || u.GroupVersionKind() != kind.WithVersion("v1") || u.GetName() != "w" {
			t.Errorf("%s\nbecomes %v", raw, obj)
		}
	}
}
