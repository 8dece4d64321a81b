package manifest

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/install"
)

// Whatever runs in the sandbox has the rights it needs by name.
func TestRulesHaveNoWildcards(t *testing.T) {
	roles := 0
	for _, manifest := range [][]byte{OperatorRBAC(), NodesRBAC()} {
		objects, err := install.Decode(manifest)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if o.GetKind() != "ClusterRole" {
				continue
			}
			roles++
			role := &rbacv1.ClusterRole{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, role, true); err != nil {
				t.Fatal(err)
			}
			for _, rule := range role.Rules {
				for _, value := range append(append(rule.Verbs, rule.Resources...), rule.APIGroups...) {
					if strings.Contains(value, "*") {
						t.Errorf("%s: %+v", role.Name, rule)
					}
				}
			}
		}
	}
	if roles != 2 {
		t.Errorf("%d cluster roles", roles)
	}
}

func TestWebhook(t *testing.T) {
	objects, err := install.Decode(Webhook(map[string]string{"tfjobs": "https://127.0.0.1:1/x", "pytorchjobs": "https://127.0.0.1:1/y"}, []byte("PEM")))
	if err != nil || len(objects) != 1 || objects[0].GetKind() != "ValidatingWebhookConfiguration" {
		t.Fatalf("got %v, %v", objects, err)
	}
	config := objects[0].Object["webhooks"].([]any)[1].(map[string]any)["clientConfig"].(map[string]any)
	if config["url"] != "https://127.0.0.1:1/x" || config["caBundle"] != "UEVN" {
		t.Errorf("got %v", config)
	}
}
