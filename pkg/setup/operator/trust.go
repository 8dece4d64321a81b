package operator

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

// Trusted parts operators into those that administrators installed and those that anybody may have who has a namespace, as
// [rbac.Policy.Trusts] has it: a Deployment with the image of an operator does not stop another user from installing one, and gets no rights
// granted. Its releases run in namespace home.
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
	return policy.Trusts(Component([]string{home}, rbacv1.PolicyRule{APIGroups: []string{"kubeflow.org"}, Resources: []string{"tfjobs"}}), account.Namespace)
}

// Component is the controller of kinds of job, given by their groups and resources: it writes their status.
func Component(homes []string, kinds ...rbacv1.PolicyRule) rbac.Component {
	c := rbac.Component{Homes: homes}
	for _, k := range kinds {
		for _, write := range []string{"update", "patch"} {
			c.Acts = append(c.Acts, rule(k.APIGroups[0], []string{k.Resources[0] + "/status"}, write))
		}
	}
	return c
}
