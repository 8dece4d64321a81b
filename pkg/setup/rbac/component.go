package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Component is a program that administrators install and that acts on the objects of all namespaces: an operator or a scheduler.
//
// Its name, its image, its labels and its lease are anybody's who may edit a namespace. What it acts by is not: a ClusterRoleBinding, which no
// user writes without rights in the whole cluster.
type Component struct {
	// Acts are rights of which it holds one in all namespaces.
	Acts []rbacv1.PolicyRule
	// Homes are the namespaces in which its releases run: there it is trusted where it has lost its rights, too. The namespace of Kubernetes'
	// own components is always one.
	Homes []string
}

// Home reports whether releases of the component run in a namespace.
func (c Component) Home(namespace string) bool {
	return namespace == metav1.NamespaceSystem || slices.Contains(c.Homes, namespace)
}

// Trusts reports whether what is in a namespace may be the component. It depends on the namespace alone: who may create pods there may run them
// as any of its accounts.
func (b *Policy) Trusts(c Component, namespace string) bool {
	if c.Home(namespace) {
		return true
	}
	accounts := []Account{{Namespace: namespace}} // stands for all of its accounts: what their groups hold
	for _, binding := range b.ClusterRoleBindings {
		for _, s := range binding.Subjects {
			if a := accountOf(s); a.Namespace == namespace && !slices.Contains(accounts, a) {
				accounts = append(accounts, a)
			}
		}
	}
	return slices.ContainsFunc(accounts, func(a Account) bool {
		held := b.Rules(a, "")
		return slices.ContainsFunc(c.Acts, func(r rbacv1.PolicyRule) bool { return len(Missing(held, []rbacv1.PolicyRule{r})) == 0 })
	})
}

// accountOf is the account that a subject of a ClusterRoleBinding names; the zero value if it names a group or another user.
func accountOf(s rbacv1.Subject) Account {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		return Account{Namespace: s.Namespace, Name: s.Name}
	case rbacv1.UserKind:
		if rest, ok := strings.CutPrefix(s.Name, serviceAccountPrefix); ok {
			namespace, name, _ := strings.Cut(rest, ":")
			return Account{Namespace: namespace, Name: name}
		}
	}
	return Account{}
}
