package rbac

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var operator = Account{Namespace: "kubeflow", Name: "training-operator"}

// rule is verbs on RESOURCE.GROUP, separated by commas.
func rule(verbs, resources, group string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: strings.Split(verbs, ","), Resources: strings.Split(resources, ","), APIGroups: strings.Split(group, ","), ResourceNames: names}
}

func ruleStrings(rules []rbacv1.PolicyRule) []string {
	var all []string
	for _, r := range rules {
		all = append(all, String(r))
	}
	return all
}

func TestMissing(t *testing.T) {
	tests := []struct {
		name         string
		held, needed []rbacv1.PolicyRule
		want         []string
	}{
		{"nothing needed", nil, nil, nil},
		{"nothing held", nil, []rbacv1.PolicyRule{rule("watch,list", "pods", "")}, []string{"list, watch pods"}},
		{"all held", []rbacv1.PolicyRule{rule("list,watch", "pods", "")}, []rbacv1.PolicyRule{rule("list", "pods", "")}, nil},
		{"held by wildcard", []rbacv1.PolicyRule{rule("*", "*", "*")}, []rbacv1.PolicyRule{rule("list", "pods/log", "")}, nil},
		{"half held", []rbacv1.PolicyRule{rule("list", "pods,nodes", "")}, []rbacv1.PolicyRule{rule("list,watch", "pods,nodes", "")}, []string{"watch nodes, pods"}},
		{"groups are merged", nil, []rbacv1.PolicyRule{rule("list", "podgroups", "b"), rule("list", "podgroups", "a")}, []string{"list podgroups.a, podgroups.b"}},
		{"what differs is not merged", nil, []rbacv1.PolicyRule{rule("list", "pods", ""), rule("create", "events", "")}, []string{"create events", "list pods"}},
		{"a name is not all names", []rbacv1.PolicyRule{rule("get", "leases", "c", "a")}, []rbacv1.PolicyRule{rule("get", "leases", "c")}, []string{"get leases.c"}},
		{"names are merged", nil, []rbacv1.PolicyRule{rule("get", "leases", "c", "b"), rule("get", "leases", "c", "a")}, []string{"get leases.c named a, b"}},
		{"all names and one name stay apart", nil, []rbacv1.PolicyRule{rule("get", "leases", "c", "b"), rule("get", "leases", "c")}, []string{"get leases.c", "get leases.c named b"}},
		{"a subresource is no resource", []rbacv1.PolicyRule{rule("patch", "podgroups", "a")}, []rbacv1.PolicyRule{rule("patch", "podgroups/status", "a")}, []string{"patch podgroups.a/status"}},
		{"paths", nil, []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}}, []string{"get /metrics"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Missing(tt.held, tt.needed)
			if !slices.Equal(ruleStrings(got), tt.want) {
				t.Errorf("got %q, want %q", ruleStrings(got), tt.want)
			}
			if rest := Missing(append(got, tt.held...), tt.needed); len(rest) > 0 {
				t.Errorf("with what is missing, %q is missing", ruleStrings(rest))
			}
			if more := Missing(tt.needed, got); len(more) > 0 {
				t.Errorf("%q was never needed", ruleStrings(more))
			}
		})
	}
}

func policy(subject rbacv1.Subject) *Policy {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	ref := func(kind, name string) rbacv1.RoleRef { return rbacv1.RoleRef{Kind: kind, Name: name} }
	return &Policy{
		ClusterRoles: []*rbacv1.ClusterRole{
			{ObjectMeta: meta("", "cluster"), Rules: []rbacv1.PolicyRule{rule("list", "nodes", "")}},
			{ObjectMeta: meta("", "shared"), Rules: []rbacv1.PolicyRule{rule("list", "pods", "")}},
			{ObjectMeta: meta("", "unbound"), Rules: []rbacv1.PolicyRule{rule("*", "*", "*")}},
		},
		ClusterRoleBindings: []*rbacv1.ClusterRoleBinding{{RoleRef: ref("ClusterRole", "cluster"), Subjects: []rbacv1.Subject{subject}},
			{RoleRef: ref("ClusterRole", "gone"), Subjects: []rbacv1.Subject{subject}}},
		Roles: []*rbacv1.Role{{ObjectMeta: meta("kubeflow", "own"), Rules: []rbacv1.PolicyRule{rule("get", "leases", "c")}},
			{ObjectMeta: meta("other", "own"), Rules: []rbacv1.PolicyRule{rule("delete", "leases", "c")}}},
		RoleBindings: []*rbacv1.RoleBinding{
			{ObjectMeta: meta("kubeflow", "a"), RoleRef: ref("Role", "own"), Subjects: []rbacv1.Subject{subject}},
			{ObjectMeta: meta("kubeflow", "b"), RoleRef: ref("ClusterRole", "shared"), Subjects: []rbacv1.Subject{subject}},
			{ObjectMeta: meta("other", "a"), RoleRef: ref("Role", "own"), Subjects: []rbacv1.Subject{subject}},
		},
	}
}

func TestRules(t *testing.T) {
	tests := []struct {
		name    string
		subject rbacv1.Subject
		holds   bool
	}{
		{"the account", operator.Subject(), true},
		{"its user name", rbacv1.Subject{Kind: "User", Name: operator.String()}, true},
		{"all accounts", rbacv1.Subject{Kind: "Group", Name: "system:serviceaccounts"}, true},
		{"all accounts of its namespace", rbacv1.Subject{Kind: "Group", Name: "system:serviceaccounts:kubeflow"}, true},
		{"everybody", rbacv1.Subject{Kind: "Group", Name: "system:authenticated"}, true},
		{"one of another namespace", rbacv1.Subject{Kind: "ServiceAccount", Namespace: "default", Name: "training-operator"}, false},
		{"another one", rbacv1.Subject{Kind: "ServiceAccount", Namespace: "kubeflow", Name: "default"}, false},
		{"another group", rbacv1.Subject{Kind: "Group", Name: "system:serviceaccounts:default"}, false},
		{"a user of that name", rbacv1.Subject{Kind: "User", Name: "training-operator"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			everywhere, there := ruleStrings(policy(tt.subject).Rules(operator, "")), ruleStrings(policy(tt.subject).Rules(operator, "kubeflow"))
			if !tt.holds && len(everywhere)+len(there) > 0 {
				t.Errorf("got %q and %q", everywhere, there)
			}
			if tt.holds && (!slices.Equal(everywhere, []string{"list nodes"}) || !slices.Equal(there, []string{"list nodes", "get leases.c", "list pods"})) {
				t.Errorf("got %q and %q", everywhere, there)
			}
		})
	}
}
