package submit

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// What is wrong with the gang shows before anything is stored: every request is a dry run.
func TestRehearsalFindsOut(t *testing.T) {
	denied := `User "bob" cannot create resource "podgroups" in API group "scheduling.x-k8s.io" in the namespace "research"`
	exists := func(s *kubetest.Server, path, kind string) {
		s.Refuse("POST "+path, 409, metav1.StatusReasonAlreadyExists, `x "llama" already exists`, &metav1.StatusDetails{Name: "llama", Kind: kind})
	}
	tests := []struct {
		name          string
		server        func(*kubetest.Server)
		message, hint string // hint: a part of it
	}{
		{"no right", func(s *kubetest.Server) { s.Refuse("POST "+groupsPath, 403, metav1.StatusReasonForbidden, denied, nil) },
			"create PodGroup research/llama: " + denied, "ask an administrator for these rules in a Role in namespace research, bound to user \"bob\":\n" +
				"  - apiGroups: [\"scheduling.x-k8s.io\"]\n    resources: [\"podgroups\"]\n    verbs: [\"create\"]\n" +
				"  - apiGroups: [\"kubeflow.org\"]\n    resources: [\"tfjobs\"]\n    verbs: [\"create\"]"},
		{"no CRD", func(*kubetest.Server) {},
			"create PodGroup research/llama: the cluster does not serve podgroups.scheduling.x-k8s.io (v1alpha1)", "--dialect labels"},
		{"a webhook", func(s *kubetest.Server) {
			s.Refuse("POST "+groupsPath, 400, metav1.StatusReasonBadRequest, "denied: no queue", nil)
		},
			"create PodGroup research/llama: denied: no queue", ""},
		{"another user's PodGroup", func(s *kubetest.Server) {
			exists(s, groupsPath, "podgroups")
			s.HandleFunc("POST "+jobsPath, echo("uid-1"))
		}, `create PodGroup research/llama: x "llama" already exists`, "choose another name; whose the PodGroup is shows `kubectl -n research get podgroups.scheduling.x-k8s.io llama -o yaml`"},
		{"the PodGroup of a job of another kind", func(s *kubetest.Server) {
			exists(s, groupsPath, "podgroups")
			s.HandleFunc("POST "+jobsPath, echo("uid-1"))
			s.Answer("GET "+groupsPath+"/llama", 200, map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
				"metadata": map[string]any{"name": "llama", "namespace": "research", "ownerReferences": []any{
					map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "llama", "uid": "uid-0", "controller": true}}}})
		}, "create PodGroup research/llama: it is that of PyTorchJob research/llama",
			"`gangctl get pytorchjob/llama -n research` and remove it with `gangctl delete pytorchjob/llama -n research`"},
		{"the PodGroup that submit made of a job of another kind", func(s *kubetest.Server) {
			exists(s, groupsPath, "podgroups")
			s.HandleFunc("POST "+jobsPath, echo("uid-1"))
			s.Answer("GET "+groupsPath+"/llama", 200, map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
				"metadata": map[string]any{"name": "llama", "namespace": "research", "ownerReferences": []any{
					map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": "llama", "uid": "uid-0", "blockOwnerDeletion": false}}}})
		}, "create PodGroup research/llama: it is that of Job research/llama",
			"`gangctl get batchjob/llama -n research` and remove it with `gangctl delete batchjob/llama -n research`"},
		{"a job of the name that is being deleted", func(s *kubetest.Server) {
			exists(s, groupsPath, "podgroups")
			exists(s, jobsPath, "tfjobs")
			s.Answer("GET "+jobsPath+"/llama", 200, map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": map[string]any{"name": "llama", "namespace": "research",
				"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": []any{"x.example/y", "foregroundDeletion"}}})
		}, "create TFJob research/llama: a TFJob of this name is being deleted: it waits for finalizer x.example/y", "`gangctl why-pending llama -n research`"},
		{"a job with its PodGroup", func(s *kubetest.Server) { exists(s, groupsPath, "podgroups"); exists(s, jobsPath, "tfjobs") },
			"create TFJob research/llama: a TFJob of this name exists", "`gangctl get llama -n research`"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := kubetest.New(t)
			tt.server(s)
			stdout, _, err := submit(t.Context(), s)
			got := failure.From(err)
			if got == nil || got.Message != tt.message || !strings.Contains(got.Hint, tt.hint) || got.Code != failure.CodeError || stdout != "" {
				t.Errorf("got %+v, stdout %q", got, stdout)
			}
			for _, request := range s.Requests() {
				if !strings.Contains(request, "dryRun=All") && !strings.HasPrefix(request, "GET ") {
					t.Errorf("not a dry run: %s", request)
				}
			}
		})
	}
}

// A job that declares no PodGroup has nothing to rehearse but itself; who else is in its gang is read.
func TestNoRehearsalWithoutPodGroup(t *testing.T) {
	s := kubetest.New(t)
	s.HandleFunc("POST "+jobsPath, echo("uid-1"))
	if _, _, err := submit(t.Context(), s, "--dialect", "labels"); err != nil {
		t.Fatal(err)
	}
	written := slices.DeleteFunc(s.Requests(), func(r string) bool { return strings.HasPrefix(r, "GET ") })
	if len(written) != 3 {
		t.Errorf("got %q", written)
	}
}

// Every job of a file is rehearsed before the first is created.
func TestRehearsalOfABatch(t *testing.T) {
	s := kubetest.New(t)
	s.HandleFunc("POST "+jobsPath, echo("uid-1"))
	s.HandleFunc("POST "+groupsPath, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if strings.Contains(string(body), `"name":"bert"`) {
			kubetest.Write(w, 403, kubetest.Status(403, metav1.StatusReasonForbidden, "no more", nil))
			return
		}
		echo("uid-2")(w, r)
	})
	_, _, failed := typeLine(t.Context(), s.Client, "", "submit", "--dialect=scheduler-plugins", "-f", file(t, jobFile+second()))
	if failed == nil || failed.Message != "create PodGroup research/bert: no more" {
		t.Errorf("got %+v", failed)
	}
	if got := creates(s); len(got) > 0 {
		t.Errorf("created: %q", got)
	}
}

// A job that needs what its file has besides is rehearsed once that exists.
func TestRehearsalAfterOthers(t *testing.T) {
	s := kubetest.New(t)
	s.Answer("GET /api/v1", 200, &metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "namespaces", Kind: "Namespace"}}})
	exists := false
	s.HandleFunc("POST /api/v1/namespaces", func(w http.ResponseWriter, r *http.Request) {
		exists = true
		echo("uid-0")(w, r)
	})
	for _, path := range []string{jobsPath, groupsPath} {
		s.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			if !exists {
				kubetest.Write(w, 404, kubetest.Status(404, metav1.StatusReasonNotFound, `namespaces "research" not found`, &metav1.StatusDetails{Name: "research", Kind: "namespaces"}))
				return
			}
			echo("uid-1")(w, r)
		})
	}
	namespace := "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: research}\n"
	out, _, failed := typeLine(t.Context(), s.Client, "", "submit", "--dialect=scheduler-plugins", "-f", file(t, jobFile+namespace))
	if failed != nil || !strings.HasPrefix(out, "namespace/research created\ntfjob.kubeflow.org/llama created\n") {
		t.Errorf("got %+v, %s", failed, out)
	}
	if requests := s.Requests(); !strings.Contains(requests[2], "/podgroups?dryRun=All") {
		t.Errorf("not rehearsed: %q", requests)
	}
}
