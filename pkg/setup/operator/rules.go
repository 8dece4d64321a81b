package operator

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/gangctl/gangctl/pkg/setup/argv"
)

// Need is a set of rules and what fails without them.
type Need struct {
	// Purpose completes "it cannot …".
	Purpose string
	// Namespaced rules are needed in the operator's own namespace only.
	Namespaced bool
	Rules      []rbacv1.PolicyRule
}

// Needs are the rights that an operator uses for TFJobs, as it is set up. Those of its release's own manifests may be more.
func (o Operator) Needs() []Need {
	needs := JobNeeds()
	if m := o.Mode(); m.On {
		needs = append(needs, GangNeed(m.Group))
	}
	if name := o.certificate(); name != "" {
		needs = append(needs, certificateNeeds(name)...)
	}
	if truth(argv.Last(o.Container(), "leader-elect")) {
		needs = append(needs, Need{Purpose: "elect a leader", Namespaced: true,
			Rules: []rbacv1.PolicyRule{rule("coordination.k8s.io", []string{"leases"}, "create", "get", "update")}})
	}
	return needs
}

// JobNeeds are the rights that every release uses to run TFJobs.
func JobNeeds() []Need {
	return []Need{
		{Purpose: "see TFJobs and report their status", Rules: []rbacv1.PolicyRule{
			rule("kubeflow.org", []string{"tfjobs"}, "delete", "list", "watch"), rule("kubeflow.org", []string{"tfjobs/status"}, "update")}},
		{Purpose: "create members", Rules: []rbacv1.PolicyRule{
			rule("", []string{"pods"}, "create", "delete", "list", "patch", "watch"), rule("", []string{"services"}, "create", "delete", "list", "watch")}},
		{Purpose: "report what it does", Rules: []rbacv1.PolicyRule{rule("", []string{"events"}, "create", "patch")}},
	}
}

// GangNeed are the rights that an operator uses to make groups of an API group.
func GangNeed(group string) Need {
	resource, verbs := "podgroups", []string{"create", "delete", "get", "list", "update", "watch"}
	if group == "policy" {
		resource, verbs = "poddisruptionbudgets", []string{"create", "delete", "get"}
	}
	return Need{Purpose: "create gangs", Rules: []rbacv1.PolicyRule{rule(group, []string{resource}, verbs...)}}
}

// webhookName is that of the ValidatingWebhookConfiguration of every release that has one.
const webhookName = "validator.training-operator.kubeflow.org"

// certificate is the Secret in which the operator keeps its webhook's certificate itself, as it does from v1.8 on; empty if it
// mounts none.
func (o Operator) certificate() string {
	for _, v := range o.Deployment.Spec.Template.Spec.Volumes {
		if v.Secret != nil {
			return v.Secret.SecretName
		}
	}
	return ""
}

func certificateNeeds(secret string) []Need {
	named := func(r rbacv1.PolicyRule, name string) rbacv1.PolicyRule {
		r.ResourceNames = []string{name}
		return r
	}
	secrets, hooks := []string{"secrets"}, []string{"validatingwebhookconfigurations"}
	const admission = "admissionregistration.k8s.io"
	return []Need{
		{Purpose: "keep the certificate of its webhook", Namespaced: true,
			Rules: []rbacv1.PolicyRule{rule("", secrets, "list", "watch"), named(rule("", secrets, "update"), secret)}},
		{Purpose: "register its webhook", Rules: []rbacv1.PolicyRule{rule(admission, hooks, "list", "watch"), named(rule(admission, hooks, "update"), webhookName)}},
	}
}

func rule(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}
