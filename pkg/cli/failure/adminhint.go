package failure

import (
	"fmt"
	"regexp"
)

// installHint is the hint by which a missing resource comes into the cluster.
func installHint(op Op) string {
	switch op.Resource.Group {
	case "kubeflow.org":
		kinds := ""
		if r := op.Resource.Resource; r != "" && r != "tfjobs" {
			kinds = " --kinds tfjobs," + r
		}
		return "ask an administrator to install the Kubeflow Training Operator (v1.7 to v1.9), as `gangctl install operator" + kinds +
			"` does, or try a local cluster that has it: gangctl-sandbox up"
	case "scheduling.x-k8s.io":
		return "ask an administrator to install the PodGroup CRD (podgroups.scheduling.x-k8s.io), or submit with --dialect labels, which needs no object"
	default:
		return "see what the cluster serves: kubectl api-resources"
	}
}

// rbacDenial is the message of the API server's authorizer for a refusal. Other 403s (quota, admission) are not about rights.
var rbacDenial = regexp.MustCompile(`User "([^"]*)" cannot (\S+) resource "([^"]*)"`)

// ruleHint is the RBAC rule that would have allowed the request, ready to be sent to an administrator. It is empty for a
// refusal that is not about rights, such as an exceeded quota.
func ruleHint(op *opError) string {
	s, ok := status(op.err)
	if !ok {
		return ""
	}
	m := rbacDenial.FindStringSubmatch(s.Message)
	if m == nil || op.op.Verb == "" {
		return ""
	}
	user, verb := m[1], m[2]
	binding := fmt.Sprintf("a Role in namespace %s", op.op.Namespace)
	if op.op.Namespace == "" {
		binding = "a ClusterRole"
	}
	return fmt.Sprintf(`ask an administrator for this rule in %s, bound to user %q:
  - apiGroups: [%q]
    resources: [%q]
    verbs: [%q]`, binding, user, op.op.Resource.Group, op.op.Resource.Resource, verb)
}
