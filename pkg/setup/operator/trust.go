package operator

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

// Trusted parts operators into those that administrators installed and those that anybody may have who has a namespace: a Deployment with the
// image of an operator does not stop another user from installing one, and gets no rights granted. An operator acts on the jobs of all namespaces by a
// ClusterRoleBinding, which no user writes without rights in the whole cluster. One without, because its rights were lost, is trusted where
// releases run, in namespace home.
func Trusted(all []Operator, policy *rbac.Policy, home string) (trusted, others []Operator) {
	for _, o := range all {
		if TrustedAccount(o.Account(), policy, home) {
			trusted = append(trusted, o)
		} else {
			others = append(others, o)
		}
	}
	return trusted, others
}

// TrustedAccount reports whether an account is an operator's: see [Trusted].
func TrustedAccount(account rbac.Account, policy *rbac.Policy, home string) bool {
	if account.Namespace == home || account.Namespace == metav1.NamespaceSystem {
		return true
	}
	held := policy.Rules(account, "")
	for _, write := range []string{"update", "patch"} {
		if len(rbac.Missing(held, []rbacv1.PolicyRule{rule("kubeflow.org", []string{"tfjobs/status"}, write)})) == 0 {
			return true
		}
	}
	return false
}
