package kube

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// discovered serves discovery in one of its formats, and records what is requested.
func discovered(t *testing.T, aggregated bool) (*Client, *[]string) {
	t.Helper()
	var requested []string
	version := func(group, version string) metav1.APIGroup {
		v := metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + version, Version: version}
		return metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
	}
	answers := map[string]any{
		"/api/v1":                    metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "nodes", Kind: "Node"}, {Name: "nodes/status", Kind: "Node"}}},
		"/apis":                      metav1.APIGroupList{Groups: []metav1.APIGroup{version("apps", "v1"), version("kubeflow.org", "v2beta1")}},
		"/apis/kubeflow.org/v2beta1": metav1.APIResourceList{GroupVersion: "kubeflow.org/v2beta1", APIResources: []metav1.APIResource{{Name: "mpijobs", Kind: "MPIJob", Namespaced: true}}},
	}
	contentType := "application/json"
	if aggregated {
		contentType += ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
		answers["/apis"] = apidiscoveryv2.APIGroupDiscoveryList{Items: []apidiscoveryv2.APIGroupDiscovery{{ObjectMeta: metav1.ObjectMeta{Name: "kubeflow.org"},
			Versions: []apidiscoveryv2.APIVersionDiscovery{{Version: "v2beta1", Resources: []apidiscoveryv2.APIResourceDiscovery{
				{Resource: "mpijobs", Scope: apidiscoveryv2.ScopeNamespace, ResponseKind: &metav1.GroupVersionKind{Group: "kubeflow.org", Version: "v2beta1", Kind: "MPIJob"}}}}}}}}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requested = append(requested, r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[r.URL.Path]
		switch {
		case !ok:
			w.WriteHeader(http.StatusInternalServerError)
			answer = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Message: "etcd is gone", Code: http.StatusInternalServerError}
		case r.URL.Path == "/apis":
			w.Header().Set("Content-Type", contentType)
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	client, err := NewClient(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return client, &requested
}

// A kind is found in both formats of discovery, with as few requests as each takes.
func TestRESTMapper(t *testing.T) {
	mpi, node := schema.GroupKind{Group: "kubeflow.org", Kind: "MPIJob"}, schema.GroupKind{Kind: "Node"}
	for name, tt := range map[string]struct {
		aggregated bool
		groups     []string
		requests   string
	}{
		"aggregated":           {true, []string{"kubeflow.org", "kueue.x-k8s.io"}, "/apis"},
		"group by group":       {false, []string{"kubeflow.org", "kueue.x-k8s.io"}, "/apis /apis/kubeflow.org/v2beta1"},
		"the core group":       {true, []string{""}, "/api/v1"},
		"a group and the core": {true, []string{"", "kubeflow.org"}, "/api/v1 /apis"},
		"nothing":              {true, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			client, requested := discovered(t, tt.aggregated)
			mapper, err := client.RESTMapper(t.Context(), tt.groups...)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(*requested, " "); got != tt.requests {
				t.Errorf("requests: %s", got)
			}
			for _, kind := range []schema.GroupKind{mpi, node} {
				mapping, err := mapper.RESTMapping(kind)
				if slices.Contains(tt.groups, kind.Group) != (err == nil) || err != nil && !meta.IsNoMatchError(err) {
					t.Errorf("%s: %v, %v", kind, mapping, err)
				}
			}
			if mapping, err := mapper.RESTMapping(mpi, "v1", "v2beta1"); err == nil && (mapping.Resource.Version != "v2beta1" || mapping.Scope != meta.RESTScopeNamespace) {
				t.Errorf("got %+v", mapping)
			}
		})
	}
}

func TestRESTMapperFails(t *testing.T) {
	client, _ := discovered(t, false)
	_, err := client.RESTMapper(t.Context(), "apps") // whose version the server cannot list
	if got := failure.From(err); got == nil || !strings.HasPrefix(got.Message, "list API resources") || !strings.HasSuffix(got.Message, ": etcd is gone") {
		t.Errorf("got %+v", got)
	}
}
