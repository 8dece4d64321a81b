package rbac

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// granted is the YAML for a user of rules by namespace.
func granted(user string, rules map[string][]rbacv1.PolicyRule) string {
	return YAML(Grant("p", user, rules)...)
}

// everywhere are rules for all namespaces.
func everywhere(rules ...rbacv1.PolicyRule) map[string][]rbacv1.PolicyRule {
	return map[string][]rbacv1.PolicyRule{"": rules}
}

const desired = `apiVersion: rbac.authorization.k8s.io/v1
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
	got := granted("system:serviceaccount:team:reader", everywhere(rule("list", "pods", ""), rule("list", "deployments", "apps"), rule("list", "nodes", ""), rule("list", "pods", "")))
	if got != strings.ReplaceAll(desired, "NAME", nameIn(t, got)) {
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
	got := granted("bob", map[string][]rbacv1.PolicyRule{"": {rule("list", "nodes", "")}, "team": {rule("list", "events", ""), rule("create", "pods", "")}})
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
	if role.Namespace != "team" || len(role.Rules) != 2 || role.Rules[0].Resources[0] != "events" || role.Rules[1].Verbs[0] != "create" {
		t.Errorf("got %+v", role)
	}
	if binding.Kind != "RoleBinding" || binding.RoleRef.Name != role.Name || binding.Subjects[0] != (rbacv1.Subject{Kind: "User", APIGroup: "rbac.authorization.k8s.io", Name: "bob"}) {
		t.Errorf("got %+v", binding)
	}
}

func TestGrantWithoutUser(t *testing.T) {
	if got := granted("", everywhere(rule("list", "nodes", ""))); strings.Contains(got, "Binding") || !strings.Contains(got, "kind: ClusterRole\n") {
		t.Errorf("got\n%s", got)
	}
	if got := granted("bob", nil); got != "" {
		t.Errorf("nothing is missing, got\n%s", got)
	}
}

// Another rule or another user is another object: applying one grant takes nothing away that an earlier one gave.
func TestGrantsDoNotReplaceEachOther(t *testing.T) {
	nodes := everywhere(rule("list", "nodes", ""))
	names := map[string]bool{}
	for _, text := range []string{granted("bob", nodes), granted("eve", nodes), granted("bob", everywhere(rule("list", "pods", ""))), granted("bob", map[string][]rbacv1.PolicyRule{"a": nodes[""]})} {
		names[nameIn(t, text)] = true
	}
	if len(names) != 4 {
		t.Errorf("names: %v", names)
	}
	if first, second := granted("bob", nodes), granted("bob", nodes); first != second {
		t.Error("the same review has two answers")
	}
}

// What is written grants what was missing, to the letter.
func TestObjects(t *testing.T) {
	needed := []rbacv1.PolicyRule{rule("create,delete", "podgroups", "scheduling.x-k8s.io")}
	docs := strings.Split(YAML(Objects("x", operator.Subject(), "", needed)...), "---\n")
	var role rbacv1.ClusterRole
	var binding rbacv1.ClusterRoleBinding
	for i, into := range []any{&role, &binding} {
		if err := yaml.UnmarshalStrict([]byte(docs[i]), into); err != nil {
			t.Fatal(err)
		}
	}
	b := &Policy{ClusterRoles: []*rbacv1.ClusterRole{&role}, ClusterRoleBindings: []*rbacv1.ClusterRoleBinding{&binding}}
	if rest := Missing(b.Rules(operator, ""), needed); len(rest) > 0 {
		t.Errorf("%q is still missing", ruleStrings(rest))
	}
	if strings.Contains(docs[0], "*") || role.Kind != "ClusterRole" || binding.APIVersion != "rbac.authorization.k8s.io/v1" {
		t.Errorf("got\n%s", docs[0])
	}
	docs = strings.Split(YAML(Objects("x", userSubject("bob"), "team", needed)...), "---\n")
	var local rbacv1.RoleBinding
	if err := yaml.UnmarshalStrict([]byte(docs[1]), &local); err != nil || local.Kind != "RoleBinding" || local.Namespace != "team" || local.Subjects[0].Name != "bob" || local.Subjects[0].APIGroup == "" {
		t.Errorf("%v\n%s", err, docs[1])
	}
}

func TestName(t *testing.T) {
	names := map[string]bool{}
	for _, n := range []string{
		nameOf("p", userSubject("a"), "", nil), nameOf("p", userSubject("b"), "", nil), nameOf("p", userSubject("a"), "x", nil), nameOf("p", userSubject("a"), "", []rbacv1.PolicyRule{rule("get", "pods", "")}),
		nameOf("p", userSubject(operator.String()), "", nil),
	} {
		names[n] = true
	}
	if names[nameOf("p", userSubject("a"), "", nil)] = true; len(names) != 5 { // the same again is no other
		t.Errorf("got %v", names)
	}
}
