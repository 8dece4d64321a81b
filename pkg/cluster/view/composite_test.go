package view

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/native"
)

// A tree that users wrote ends, however deep it is.
func TestDeepTree(t *testing.T) {
	s := &snapshot.Snapshot{}
	s.Server.Resources = []string{"compositepodgroups.scheduling.k8s.io/v1alpha3"}
	names := "abcdefghijkl"
	for i := range names {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGroupVersionKind(native.CompositeKind().WithVersion("v1alpha3"))
		u.SetNamespace("team")
		u.SetName(names[i : i+1])
		if i > 0 {
			u.Object["spec"] = map[string]any{"parentCompositePodGroupName": names[i-1 : i]}
		}
		if err := s.Put(u); err != nil {
			t.Fatal(err)
		}
	}
	s.Finish()
	in := func(parent string) *gang.Declaration {
		return &gang.Declaration{Key: gang.Key{Dialect: gang.Native, Namespace: "team", Name: "g"}, Parent: parent}
	}
	for _, parent := range []string{"a", "l"} {
		if c, err := New(s).CompositeOf(in(parent)); err == nil {
			t.Errorf("%s: %v", parent, c)
		}
	}
	if _, err := New(s).CompositeOf(in("z")); !errors.Is(err, ErrNoComposite) {
		t.Error(err)
	}
	s.Server.Resources = []string{}
	if _, err := New(s).CompositeOf(in("a")); !errors.Is(err, ErrCompositesUnknown) {
		t.Error(err)
	}
}
