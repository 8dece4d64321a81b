package collect

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
)

const whoAmI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

// The caller is read only where something was refused, and from the refusal where the server does not report it.
func TestCaller(t *testing.T) {
	reports := func(s *kubetest.Server) {
		s.Answer("POST "+whoAmI, 201, map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "status": map[string]any{"userInfo": map[string]any{"username": "eve@example.com"}}})
	}
	for name, tt := range map[string]struct {
		prepare []func(*kubetest.Server)
		want    string
	}{
		"nothing is refused": {[]func(*kubetest.Server){reports}, ""},
		"the server reports": {[]func(*kubetest.Server){reports, func(s *kubetest.Server) { refused(s, "/api/v1/nodes", "nodes") }}, "eve@example.com"},
		"it does not":        {[]func(*kubetest.Server){func(s *kubetest.Server) { refused(s, "/api/v1/nodes", "nodes") }}, "eve"},
		"not even then": {[]func(*kubetest.Server){func(s *kubetest.Server) {
			s.Refuse("GET /api/v1/nodes", 403, metav1.StatusReasonForbidden, "no", nil)
		}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := server(t)
			for _, prepare := range tt.prepare {
				prepare(s)
			}
			got, err := collect(t, s, Options{Namespace: "team"})
			if err != nil || got.Caller != tt.want {
				t.Errorf("got %q, %v, want %q", got.Caller, err, tt.want)
			}
			queried := slices.ContainsFunc(s.Requests(), func(r string) bool { return strings.HasPrefix(r, "POST "+whoAmI) })
			if queried != (len(got.Denied) > 0) {
				t.Errorf("queried who I am: %v, refused: %v", queried, got.Denied)
			}
		})
	}
}

// The message of the narrower refusal is kept: its right is the one to request first.
func TestDenialKeepsTheMessage(t *testing.T) {
	s := server(t)
	s.Refuse("GET /api/v1/pods", 403, metav1.StatusReasonForbidden, "not everywhere", nil)
	s.Refuse("GET /api/v1/namespaces/team/pods", 403, metav1.StatusReasonForbidden, "not in team either", nil)
	s.Refuse("GET /api/v1/nodes", 403, metav1.StatusReasonForbidden, "no nodes", nil)
	got, err := collect(t, s, Options{Namespace: "team"})
	if err != nil {
		t.Fatal(err)
	}
	if d := got.Denial("", "pods", "team"); d == nil || d.Message != "not in team either" {
		t.Errorf("got %+v", d)
	}
	if d := got.Denial("", "nodes", ""); d == nil || d.Message != "no nodes" {
		t.Errorf("got %+v", d)
	}
}

// job is a TFJob that is about to be submitted, with its group.
func job() []Object {
	meta := func(name string) map[string]any { return map[string]any{"namespace": "team", "name": name} }
	template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "tensorflow", "image": "i"}}}}
	roles := map[string]any{"Worker": map[string]any{"replicas": int64(2), "template": template}, "PS": map[string]any{"template": template}}
	return []Object{
		{&unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": meta("j"), "spec": map[string]any{"tfReplicaSpecs": roles}}},
			schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"}},
		{&unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": meta("g")}},
			schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}},
	}
}

const (
	jobsOfTeam   = "POST /apis/kubeflow.org/v1/namespaces/team/tfjobs"
	groupsOfTeam = "POST /apis/scheduling.x-k8s.io/v1alpha1/namespaces/team/podgroups"
	podsOfTeam   = "POST /api/v1/namespaces/team/pods"
)

// The job, its group and one pod of each role are tried; every answer is kept, and refusals of rights apart.
func TestRehearse(t *testing.T) {
	s := kubetest.New(t)
	stored := job()[0]
	stored.SetUID("uid-of-a-dry-run")
	s.Answer(jobsOfTeam, 201, stored.Object)
	s.Refuse(groupsOfTeam, 403, metav1.StatusReasonForbidden, `User "eve" cannot create resource "podgroups"`, nil)
	s.HandleFunc(podsOfTeam, func(w http.ResponseWriter, _ *http.Request) {
		kubetest.Write(w, 403, kubetest.Status(403, metav1.StatusReasonForbidden, `pods is forbidden: exceeded quota: q`, nil))
	})
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	snap := &snapshot.Snapshot{}
	if failed, err := Rehearse(context.Background(), client, snap, job()...); failed != nil || err != nil {
		t.Fatalf("%v, %v", failed, err)
	}
	var names []string
	for _, p := range snap.Probes {
		names = append(names, p.Kind+"/"+p.Name)
	}
	if want := []string{"TFJob/j", "Pod/j-ps-0", "Pod/j-worker-0"}; !slices.Equal(names, want) {
		t.Errorf("probes: %v, want %v", names, want)
	}
	if !snap.Probes[0].Accepted() || snap.Probes[1].Accepted() || snap.Probes[1].Message != "pods is forbidden: exceeded quota: q" {
		t.Errorf("probes: %+v", snap.Probes)
	}
	if snap.Denial(snapshot.VerbCreate, "podgroups.scheduling.x-k8s.io", "team") == nil || !snap.CanList("podgroups.scheduling.x-k8s.io", "team") || snap.Caller != "eve" {
		t.Errorf("denied: %+v by %q", snap.Denied, snap.Caller)
	}
	for i, r := range s.Requests() {
		// A pod without the uid of its owner is invalid.
		if strings.HasPrefix(r, podsOfTeam) && !strings.Contains(s.Body(i), "uid-of-a-dry-run") {
			t.Errorf("a pod without an owner: %q", s.Body(i))
		}
		if !strings.Contains(r, "dryRun=All") && !strings.HasPrefix(r, "POST "+whoAmI) {
			t.Errorf("not a dry run: %s", r)
		}
	}
	if len(snap.Custom) != 0 || len(snap.Pods) != 0 {
		t.Error("what was only tried is in the snapshot")
	}
}

// A Job is tried with its pods where a job of another kind has its name.
func TestRehearseBesideAnotherKind(t *testing.T) {
	s := kubetest.New(t)
	template := map[string]any{"metadata": map[string]any{"labels": map[string]any{"scheduling.x-k8s.io/pod-group": "g"}}, "spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "i"}}}}
	submitted := Object{&unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"namespace": "team", "name": "j"}, "spec": map[string]any{"template": template}}},
		schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}}
	s.Answer("POST /apis/batch/v1/namespaces/team/jobs", 201, submitted.Object)
	s.Answer(podsOfTeam, 201, map[string]any{"apiVersion": "v1", "kind": "Pod"})
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	snap := &snapshot.Snapshot{}
	if err := snap.PutUntyped(job()[0].Unstructured); err != nil {
		t.Fatal(err)
	}
	if _, err := Rehearse(t.Context(), client, snap, submitted); err != nil || len(snap.Probes) != 2 {
		t.Errorf("got %+v, %v", snap.Probes, err)
	}
}

func TestRehearseFails(t *testing.T) {
	for name, status := range map[string]*metav1.Status{
		"it exists":    kubetest.Status(409, metav1.StatusReasonAlreadyExists, "exists", &metav1.StatusDetails{Name: "j"}),
		"no namespace": kubetest.Status(404, metav1.StatusReasonNotFound, "no", &metav1.StatusDetails{Kind: "namespaces", Name: "team"}),
		"unauthorized": kubetest.Status(401, metav1.StatusReasonUnauthorized, "no", nil),
		"no leader":    kubetest.Status(500, metav1.StatusReasonInternalError, "etcdserver: leader changed", nil),
		"a conflict":   kubetest.Status(409, metav1.StatusReasonConflict, "the object has been modified", nil),
	} {
		s := kubetest.New(t)
		s.Answer(jobsOfTeam, int(status.Code), status)
		client, err := s.Client()
		if err != nil {
			t.Fatal(err)
		}
		failed, err := Rehearse(context.Background(), client, &snapshot.Snapshot{}, job()...)
		if err == nil || failed == nil || failed.GetKind() != "TFJob" || slices.ContainsFunc(s.Requests(), func(r string) bool { return !strings.HasPrefix(r, jobsOfTeam) }) {
			t.Errorf("%s: got %v, %v after %v", name, failed, err, s.Requests())
		}
	}
}
