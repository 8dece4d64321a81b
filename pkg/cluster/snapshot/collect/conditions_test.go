package collect

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot/page"
	"github.com/gangctl/gangctl/pkg/gang/kind/kubeflow"
)

// Jobs of other namespaces end when and why they did, and the rest of their conditions is one object.
func TestConditionsOfOtherJobs(t *testing.T) {
	const job = `{"metadata":{"name":"j","namespace":"NS"},"spec":{"tfReplicaSpecs":{"Worker":{"template":{"spec":{"containers":[{"name":"tensorflow"}]}}}}},
"status":{"conditions":[{"type":"Created","status":"True","reason":"TFJobCreated","message":"j is created","lastTransitionTime":"2026-11-21T12:00:00Z"},
{"type":"Failed","status":"False","message":"not yet"},{"type":"Succeeded","status":"True","reason":"Done","message":"j is done","lastTransitionTime":"2026-11-21T13:00:00Z"}]}}`
	read := func(namespace string, lean bool) *unstructured.Unstructured {
		t.Helper()
		decode, err := untyped("v1", schema.GroupKind{Group: trainingGroup, Kind: "TFJob"})(Options{Namespace: "team", Lean: lean})
		if err != nil {
			t.Fatal(err)
		}
		var last *unstructured.Unstructured
		for range 2 { // the second one shares
			obj, err := decode(page.Item{Raw: []byte(strings.Replace(job, "NS", namespace, 1))})
			if err != nil {
				t.Fatal(err)
			}
			last, _ = obj.(*unstructured.Unstructured)
		}
		return last
	}
	conditions := func(u *unstructured.Unstructured) []any {
		list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		return list
	}
	whole := read("team", true)
	if len(conditions(whole)) != 3 || !reflect.DeepEqual(conditions(whole), conditions(read("other", false))) {
		t.Errorf("the conditions are not whole: %v", conditions(whole))
	}
	short := read("other", true)
	want := []any{map[string]any{"type": "Created", "status": "True"}, map[string]any{"type": "Failed", "status": "False"}, conditions(whole)[2]}
	if got := conditions(short); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	layout := kubeflow.Layout{Specs: "tfReplicaSpecs", Container: "tensorflow"}
	a, err := kubeflow.Read(whole, layout)
	if err != nil {
		t.Fatal(err)
	}
	b, err := kubeflow.Read(short, layout)
	if err != nil || !reflect.DeepEqual(a.End, b.End) || a.End == nil || a.Seen != b.Seen {
		t.Errorf("the job ended %+v, and reads %+v, %v", a.End, b.End, err)
	}
}
