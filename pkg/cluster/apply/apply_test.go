package apply

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
)

func some() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		object("Deployment", "ns", "app"), object("ConfigMap", "ns", "b"), object("ConfigMap", "ns", "a", "1"),
		object(kindDefinition, "", "things.example.com"), object("ClusterRole", "", "role"), object("Namespace", "", "ns"),
	}
}

func equal(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// What others need comes first; what is the same is not called changed.
func TestApply(t *testing.T) {
	s := kubetest.NewStore(t)
	a, lines := applier(t, s)
	if err := a.Apply(t.Context(), some()); err != nil {
		t.Fatal(err)
	}
	equal(t, *lines, []string{
		"namespace/ns created", "customresourcedefinition.apiextensions.k8s.io/things.example.com created",
		"clusterrole.rbac.authorization.k8s.io/role created", "configmap/a created", "configmap/b created", "deployment.apps/app created",
	})
	*lines = nil
	again := some()
	again[2] = object("ConfigMap", "ns", "a", "2")
	if err := a.Apply(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	equal(t, *lines, []string{
		"namespace/ns unchanged", "customresourcedefinition.apiextensions.k8s.io/things.example.com unchanged",
		"clusterrole.rbac.authorization.k8s.io/role unchanged", "configmap/a configured", "configmap/b unchanged", "deployment.apps/app unchanged",
	})
	if !slices.ContainsFunc(s.Requests(), func(r string) bool {
		return strings.HasPrefix(r, "PATCH /api/v1/namespaces/ns/configmaps/a?") && strings.Contains(r, "fieldManager=gangctl") && strings.Contains(r, "force=false")
	}) {
		t.Errorf("requests: %q", s.Requests())
	}
}

// A dry run keeps nothing, and does not stop at a namespace that is only thought of.
func TestDryRun(t *testing.T) {
	s := kubetest.NewStore(t)
	s.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/namespaces/ns/") {
			return false
		}
		kubetest.Write(w, 404, kubetest.Status(404, metav1.StatusReasonNotFound, `namespaces "ns" not found`, &metav1.StatusDetails{Name: "ns", Kind: "namespaces"}))
		return true
	})
	a, lines := applier(t, s)
	a.DryRun = true
	if err := a.Apply(t.Context(), some()); err != nil {
		t.Fatal(err)
	}
	if len(s.Paths()) != 0 || len(*lines) != 6 || !strings.HasSuffix((*lines)[5], "app created") {
		t.Errorf("%q are kept; reported: %q", s.Paths(), *lines)
	}
}

// One object that is refused is reported, and the others are done all the same.
func TestOneIsRefused(t *testing.T) {
	s := kubetest.NewStore(t)
	s.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, "/configmaps/a") {
			return false
		}
		kubetest.Write(w, 403, kubetest.Status(403, metav1.StatusReasonForbidden, `admission webhook "no.example.com" denied the request: no`, nil))
		return true
	})
	a, lines := applier(t, s)
	got := failure.From(a.Apply(t.Context(), some()))
	if got == nil || got.Message != `apply ConfigMap ns/a: admission webhook "no.example.com" denied the request: no` || got.Code != failure.CodeError {
		t.Errorf("got %+v", got)
	}
	if len(*lines) != 5 || (*lines)[4] != "deployment.apps/app created" {
		t.Errorf("reported: %q", *lines)
	}
}

// Without their namespace, objects are not tried; those that need none are.
func TestNamespaceIsRefused(t *testing.T) {
	s := kubetest.NewStore(t)
	s.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch || r.URL.Path != "/api/v1/namespaces/ns" {
			return false
		}
		kubetest.Write(w, 403, kubetest.Status(403, metav1.StatusReasonForbidden, `User "bob" cannot patch resource "namespaces" in API group ""`, nil))
		return true
	})
	a, lines := applier(t, s)
	got := failure.From(a.Apply(t.Context(), some()))
	if got == nil {
		t.Fatal("no error")
	}
	equal(t, strings.Split(got.Message, "\n"), []string{
		`apply Namespace ns: User "bob" cannot patch resource "namespaces" in API group ""`,
		"apply ConfigMap ns/a: not tried, because there is no namespace for it", "apply ConfigMap ns/b: not tried, because there is no namespace for it",
		"apply Deployment ns/app: not tried, because there is no namespace for it",
	})
	equal(t, *lines, []string{"customresourcedefinition.apiextensions.k8s.io/things.example.com created", "clusterrole.rbac.authorization.k8s.io/role created"})
}

// A definition that is refused is not waited for.
func TestDefinitionIsRefused(t *testing.T) {
	s := kubetest.NewStore(t)
	s.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/customresourcedefinitions/") {
			return false
		}
		kubetest.Write(w, 403, kubetest.Status(403, metav1.StatusReasonForbidden, "no", nil))
		return true
	})
	a, _ := applier(t, s)
	got := failure.From(a.Apply(t.Context(), some()))
	if want := "apply CustomResourceDefinition things.example.com: no"; got == nil || got.Message != want {
		t.Errorf("got %+v, want %s", got, want)
	}
}

// A server that goes away ends the work: its loss is reported once, and how to go on.
func TestServerGoesAway(t *testing.T) {
	s := kubetest.NewStore(t)
	s.Hook(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/configmaps/a") {
			panic(http.ErrAbortHandler)
		}
		return false
	})
	a, lines := applier(t, s)
	got := failure.From(a.Apply(t.Context(), some()))
	if got == nil || strings.Count(got.Message, "\n") != 0 || !strings.HasPrefix(got.Message, "apply ConfigMap ns/a: the connection to the API server") {
		t.Fatalf("got %+v", got)
	}
	if !strings.Contains(got.Hint, "3 of 6 objects are done; to complete them, run the same command again") || len(*lines) != 3 {
		t.Errorf("hint: %s; reported: %q", got.Hint, *lines)
	}
	s.Hook(nil)
	*lines = nil
	if err := a.Apply(t.Context(), some()); err != nil {
		t.Fatal(err)
	}
	if (*lines)[2] != "clusterrole.rbac.authorization.k8s.io/role unchanged" || (*lines)[5] != "deployment.apps/app created" {
		t.Errorf("reported: %q", *lines)
	}
}

func TestConflict(t *testing.T) {
	s := kubetest.NewStore(t)
	s.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch || r.URL.Query().Get("force") == "true" {
			return false
		}
		status := kubetest.Status(409, metav1.StatusReasonConflict, "Apply failed with 2 conflicts", &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "helm" using apps/v1`, Field: ".spec.replicas"},
			{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "kubectl-edit"`, Field: ".spec.paused"},
		}})
		kubetest.Write(w, 409, status)
		return true
	})
	a, _ := applier(t, s)
	objects := []*unstructured.Unstructured{object("Deployment", "ns", "app")}
	s.Put("/apis/apps/v1/namespaces/ns/deployments/app", object("Deployment", "ns", "app", "x"))
	s.Put("/api/v1/namespaces/ns/configmaps/app", object("ConfigMap", "ns", "app", "x"))
	got := failure.From(a.Apply(t.Context(), objects))
	want := "apply Deployment ns/app: others own what would be changed: .spec.replicas is owned by helm, .spec.paused is owned by kubectl-edit"
	if got == nil || got.Message != want || !strings.Contains(got.Hint, "--force-conflicts") {
		t.Errorf("got %+v", got)
	}
	if got = failure.From(a.Conflicts(t.Context(), append(objects, object("ConfigMap", "ns", "app"), object("ConfigMap", "ns", "new")))); got == nil || !strings.Contains(got.Message, want) || strings.Count(got.Message, "\n") != 1 {
		t.Errorf("found before: %+v", got)
	}
	a.Force = true
	if err := a.Conflicts(t.Context(), objects); err != nil {
		t.Errorf("with force, before: %v", err)
	}
	if err := a.Apply(t.Context(), objects); err != nil {
		t.Errorf("with force: %v", err)
	}
}
