package apply

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDiff(t *testing.T) {
	before, after := object("ConfigMap", "ns", "a", "1"), object("ConfigMap", "ns", "a", "2")
	before.SetResourceVersion("1")
	after.SetResourceVersion("2")
	after.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "x"}})
	tests := []struct {
		name   string
		result Result
		want   string
	}{
		{"changed", Result{Before: before, After: after}, `--- cluster/configmap/a
+++ gangctl/configmap/a
@@ -1,6 +1,6 @@
 apiVersion: v1
 data:
-  key: "1"
+  key: "2"
 kind: ConfigMap
 metadata:
   labels:
`},
		{"new", Result{After: before}, `--- cluster/configmap/a
+++ gangctl/configmap/a
@@ -0,0 +1,9 @@
+apiVersion: v1
+data:
+  key: "1"
+kind: ConfigMap
+metadata:
+  labels:
+    x: "y"
+  name: a
+  namespace: ns
`},
		{"same, but for what servers keep", Result{Before: before, After: object("ConfigMap", "ns", "a", "1")}, ""},
	}
	for _, tt := range tests {
		tt.result.Object = before
		got, err := tt.result.Diff()
		if err != nil || got != tt.want {
			t.Errorf("%s: %v\n%s", tt.name, err, got)
		}
	}
}

func TestDiffWithoutLabel(t *testing.T) {
	before, after := object("ConfigMap", "ns", "a"), object("ConfigMap", "ns", "a")
	before.SetLabels(map[string]string{"version": "1", "team": "a"})
	after.SetLabels(map[string]string{"version": "2", "team": "a"})
	r := Result{Object: before, Before: before, After: after}
	if got, err := r.Diff("version"); got != "" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := r.Diff("team"); got == "" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestOwner(t *testing.T) {
	fields := object("ConfigMap", "ns", "a")
	fields.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubelet", Subresource: "status"}, {Manager: "kubectl-create"}})
	helm := object("ConfigMap", "ns", "a")
	helm.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
	managed := helm.DeepCopy()
	helm.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "volcano", "meta.helm.sh/release-namespace": "ml"})
	argo := managed.DeepCopy()
	argo.SetAnnotations(map[string]string{"argocd.argoproj.io/tracking-id": "app:x"})
	tests := []struct{ got, want string }{
		{Owner(fields), "kubectl-create"}, {Owner(helm), "Helm release ml/volcano"}, {Owner(managed), "Helm"}, {Owner(argo), "Argo CD (app:x)"},
		{Owner(object("ConfigMap", "ns", "a")), "another user"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
