package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/internal/kubetest"
)

// applier returns an applier on a store, and the lines that it reports.
func applier(t *testing.T, s *kubetest.Store) (*Applier, *[]string) {
	t.Helper()
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	return &Applier{Client: client.Dynamic, Report: func(r Result) { lines = append(lines, Name(r.Object)+" "+string(r.Action)) }}, &lines
}

// object is one of a kind that tests use.
func object(kind, namespace, name string, data ...string) *unstructured.Unstructured {
	versions := map[string]string{
		"Namespace": "v1", "ConfigMap": "v1", "Deployment": "apps/v1", kindDefinition: "apiextensions.k8s.io/v1",
		"ClusterRole": "rbac.authorization.k8s.io/v1",
	}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": versions[kind], "kind": kind}}
	o.SetName(name)
	o.SetNamespace(namespace)
	o.SetLabels(map[string]string{"x": "y"})
	for _, value := range data {
		o.Object["data"] = map[string]any{"key": value}
	}
	return o
}
