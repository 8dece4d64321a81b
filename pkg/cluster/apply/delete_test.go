package apply

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// filled is a store with some objects, as they are found there.
func filled(t *testing.T) (*kubetest.Store, *Applier, *[]string, []*unstructured.Unstructured) {
	t.Helper()
	s := kubetest.NewStore(t)
	a, lines := applier(t, s)
	if err := a.Apply(t.Context(), some()); err != nil {
		t.Fatal(err)
	}
	*lines = nil
	found, err := Find(t.Context(), a.Client, "x=y", ShippedKinds())
	if err != nil {
		t.Fatal(err)
	}
	return s, a, lines, found
}

// Everything is found, on however many pages, in the order in which it is applied.
func TestFind(t *testing.T) {
	_, _, _, found := filled(t)
	var names []string
	for _, o := range found {
		names = append(names, Describe(o))
	}
	equal(t, names, []string{"Namespace ns", "CustomResourceDefinition things.example.com", "ClusterRole role", "ConfigMap ns/a", "ConfigMap ns/b", "Deployment ns/app"})
}

// A kind that cannot be listed is no kind without objects.
func TestFindRefused(t *testing.T) {
	s, a, _, _ := filled(t)
	s.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/configmaps" {
			return false
		}
		kubetest.Write(w, 403, kubetest.Status(403, metav1.StatusReasonForbidden, `User "bob" cannot list resource "configmaps" in API group ""`, nil))
		return true
	})
	_, err := Find(t.Context(), a.Client, "x=y", ShippedKinds())
	if got := failure.From(err); got == nil || !strings.HasPrefix(got.Message, "list ConfigMaps in all namespaces: ") || !strings.Contains(got.Hint, `verbs: ["list"]`) {
		t.Errorf("got %+v", got)
	}
}

// What is no longer desired is deleted, except for what contains objects of others.
func TestPrune(t *testing.T) {
	s, a, lines, found := filled(t)
	if err := a.Prune(t.Context(), found, []*unstructured.Unstructured{object("ConfigMap", "ns", "a"), object("Deployment", "ns", "app")}); err != nil {
		t.Fatal(err)
	}
	equal(t, *lines, []string{"configmap/b pruned", "clusterrole.rbac.authorization.k8s.io/role pruned"})
	equal(t, s.Paths(), []string{
		"/api/v1/namespaces/ns", "/api/v1/namespaces/ns/configmaps/a",
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com", "/apis/apps/v1/namespaces/ns/deployments/app",
	})
}

// The last comes first; each is tried; what is gone already is no failure; and it is that object, not a later one of its name.
func TestDelete(t *testing.T) {
	s, a, lines, found := filled(t)
	s.Remove("/api/v1/namespaces/ns/configmaps/b")
	s.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodDelete || !strings.HasSuffix(r.URL.Path, "/configmaps/a") {
			return false
		}
		kubetest.Write(w, 409, kubetest.Status(409, metav1.StatusReasonConflict, "the UID in the precondition does not match", nil))
		return true
	})
	got := failure.From(a.Delete(t.Context(), found))
	if got == nil || got.Message != "delete ConfigMap ns/a: the UID in the precondition does not match" {
		t.Errorf("got %+v", got)
	}
	equal(t, *lines, []string{
		"deployment.apps/app deleted", "configmap/b deleted", "clusterrole.rbac.authorization.k8s.io/role deleted",
		"customresourcedefinition.apiextensions.k8s.io/things.example.com deleted", "namespace/ns deleted",
	})
	at := slices.Index(s.Requests(), "DELETE /apis/apps/v1/namespaces/ns/deployments/app")
	if at < 0 || !strings.Contains(s.Body(at), `"preconditions":{"uid":"uid-app"}`) || !strings.Contains(s.Body(at), `"propagationPolicy":"Background"`) {
		t.Errorf("requests: %q", s.Requests())
	}
}

func TestWaitGone(t *testing.T) {
	s, a, _, found := filled(t)
	held := object("Namespace", "", "ns")
	held.SetFinalizers([]string{"example.com/keep"})
	s.Remove("/")
	s.Put("/api/v1/namespaces/ns", held)
	err := a.WaitGone(t.Context(), found, 300*time.Millisecond)
	want := "Namespace ns is still there after 300ms, held by its finalizers example.com/keep"
	if got := failure.From(err); got == nil || got.Message != want || !strings.Contains(got.Hint, "kubectl get namespace ns -o yaml") {
		t.Errorf("got %+v", got)
	}
	found[0].SetUID("another") // another user has created it again
	if err := a.WaitGone(t.Context(), found, time.Minute); err != nil {
		t.Error(err)
	}
}
