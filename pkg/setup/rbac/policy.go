// Package rbac answers, from the roles and bindings of a cluster, what an account may do and what it lacks, and writes the
// objects that grant it. It is pure.
package rbac

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Account is a ServiceAccount.
type Account struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// AccountOf is the account that pods of a spec in a namespace run as.
func AccountOf(namespace string, pod *corev1.PodSpec) Account {
	return Account{Namespace: namespace, Name: cmp.Or(pod.ServiceAccountName, "default")}
}

// serviceAccountPrefix begins the user names of ServiceAccounts.
const serviceAccountPrefix = "system:serviceaccount:"

// String is the user name of the account.
func (a Account) String() string { return serviceAccountPrefix + a.Namespace + ":" + a.Name }

// Subject is the account as bindings name it.
func (a Account) Subject() rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: a.Namespace, Name: a.Name}
}

// is reports whether a subject of a binding in a namespace (empty for cluster-wide ones) stands for the account: itself, by its
// user name, or by one of the groups that every account is in.
func (a Account) is(s rbacv1.Subject, namespace string) bool {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		ns := s.Namespace
		if ns == "" {
			ns = namespace
		}
		return s.Name == a.Name && ns == a.Namespace
	case rbacv1.UserKind:
		return s.Name == a.String()
	case rbacv1.GroupKind:
		return slices.Contains([]string{"system:serviceaccounts", "system:serviceaccounts:" + a.Namespace, "system:authenticated"}, s.Name)
	}
	return false
}

// Policy is every role and binding of a cluster.
type Policy struct {
	ClusterRoles        []*rbacv1.ClusterRole
	ClusterRoleBindings []*rbacv1.ClusterRoleBinding
	Roles               []*rbacv1.Role
	RoleBindings        []*rbacv1.RoleBinding
}

// Rules are those that an account holds in a namespace; with an empty namespace, those that it holds everywhere.
func (b *Policy) Rules(a Account, namespace string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, binding := range b.ClusterRoleBindings {
		if binds(binding.Subjects, a, "") {
			rules = append(rules, b.clusterRole(binding.RoleRef.Name)...)
		}
	}
	if namespace == "" {
		return rules
	}
	for _, binding := range b.RoleBindings {
		if binding.Namespace != namespace || !binds(binding.Subjects, a, namespace) {
			continue
		}
		if binding.RoleRef.Kind == "ClusterRole" {
			rules = append(rules, b.clusterRole(binding.RoleRef.Name)...)
			continue
		}
		for _, role := range b.Roles {
			if role.Namespace == namespace && role.Name == binding.RoleRef.Name {
				rules = append(rules, role.Rules...)
			}
		}
	}
	return rules
}

func binds(subjects []rbacv1.Subject, a Account, namespace string) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool { return a.is(s, namespace) })
}

// ClusterRole finds a role by its name; nil if there is none.
func (b *Policy) ClusterRole(name string) *rbacv1.ClusterRole {
	i := slices.IndexFunc(b.ClusterRoles, func(r *rbacv1.ClusterRole) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return b.ClusterRoles[i]
}

func (b *Policy) clusterRole(name string) []rbacv1.PolicyRule {
	if role := b.ClusterRole(name); role != nil {
		return role.Rules
	}
	return nil
}

// RulesOf are those of an object that is a Role or a ClusterRole.
func RulesOf(o *unstructured.Unstructured) ([]rbacv1.PolicyRule, error) {
	role := &rbacv1.ClusterRole{} // of the rules, both kinds have the same
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return role.Rules, nil
}
