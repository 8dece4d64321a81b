package rights

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

func list(group, resource, namespace string) answer.Right {
	return answer.Right{Verb: "list", Group: group, Resource: resource, Namespace: namespace}
}

const wanted = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: NAME
rules:
- apiGroups:
  - ""
  resources:
  - nodes
  - pods
  verbs:
  - list
- apiGroups:
  - apps
  resources:
  - deployments
  verbs:
  - list
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: NAME
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: NAME
subjects:
- kind: ServiceAccount
  name: reader
  namespace: team
`

func TestGrant(t *testing.T) {
	got := Grant("system:serviceaccount:team:reader", []answer.Right{list("", "pods", ""), list("apps", "deployments", ""), list("", "nodes", ""), list("", "pods", "")})
	if got != strings.ReplaceAll(wanted, "NAME", nameIn(t, got)) {
		t.Errorf("got\n%s", got)
	}
}

// nameIn is the name of the first object.
func nameIn(t *testing.T, text string) string {
	t.Helper()
	first, _, _ := strings.Cut(text, "---\n")
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict([]byte(first), &role); err != nil || role.Name == "" {
		t.Fatalf("%v in\n%s", err, text)
	}
	return role.Name
}

// What belongs to one namespace is granted there, and only there.
func TestGrantByNamespace(t *testing.T) {
	got := Grant("bob", []answer.Right{list("", "nodes", ""), list("", "events", "team"), {Verb: "create", Resource: "pods", Namespace: "team"}})
	docs := strings.Split(got, "---\n")
	if len(docs) != 4 {
		t.Fatalf("%d documents:\n%s", len(docs), got)
	}
	var role rbacv1.Role
	var binding rbacv1.RoleBinding
	if err := yaml.UnmarshalStrict([]byte(docs[2]), &role); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(docs[3]), &binding); err != nil {
		t.Fatal(err)
	}
	if role.Namespace != "team" || len(role.Rules) != 2 || role.Rules[0].Verbs[0] != "create" || role.Rules[1].Resources[0] != "events" {
		t.Errorf("got %+v", role)
	}
	if binding.Kind != "RoleBinding" || binding.RoleRef.Name != role.Name || binding.Subjects[0] != (rbacv1.Subject{Kind: "User", APIGroup: "rbac.authorization.k8s.io", Name: "bob"}) {
		t.Errorf("got %+v", binding)
	}
}

func TestGrantWithoutUser(t *testing.T) {
	if got := Grant("", []answer.Right{list("", "nodes", "")}); strings.Contains(got, "Binding") || !strings.Contains(got, "kind: ClusterRole\n") {
		t.Errorf("got\n%s", got)
	}
	if got := Grant("bob", nil); got != "" {
		t.Errorf("nothing is missing, got\n%s", got)
	}
}

// Another rule or another user is another object: applying one grant takes nothing away that an earlier one gave.
func TestGrantsDoNotReplaceEachOther(t *testing.T) {
	nodes := []answer.Right{list("", "nodes", "")}
	names := map[string]bool{}
	for _, text := range []string{Grant("bob", nodes), Grant("eve", nodes), Grant("bob", []answer.Right{list("", "pods", "")}), Grant("bob", []answer.Right{list("", "nodes", "a")})} {
		names[nameIn(t, text)] = true
	}
	if len(names) != 4 {
		t.Errorf("names: %v", names)
	}
	if first, second := Grant("bob", nodes), Grant("bob", nodes); first != second {
		t.Error("the same question has two answers")
	}
}
