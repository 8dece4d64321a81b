package check

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

// schedulerLimits: the right to patch jobs is one to run anything, and RBAC knows no fields. Without the right there is nothing to limit.
func schedulerLimits(f *Facts) []Finding {
	if f.Policy.ClusterRole(policyRole) == nil {
		return nil
	}
	var findings []Finding
	for _, account := range schedulerAccounts(f) {
		why := unlimited(f, account)
		if why == "" {
			findings = append(findings, okf("%s (account %s/%s): limited by ValidatingAdmissionPolicy %s", install.SchedulerInstance, account.Namespace, account.Name, install.SchedulerLimit))
			continue
		}
		findings = append(findings, warnf("%s (account %s/%s) may change all of a job: %s", install.SchedulerInstance, account.Namespace, account.Name, why).
			hint("%s; Kubernetes has these policies since 1.30", installHint))
	}
	return findings
}

// unlimited is why the policy does not limit an account; empty if it does.
func unlimited(f *Facts, account rbac.Account) string {
	policy, binding := gang.Named(f.AdmissionPolicies, "", install.SchedulerLimit), gang.Named(f.AdmissionBindings, "", install.SchedulerLimit)
	switch {
	case policy == nil:
		return "there is no ValidatingAdmissionPolicy " + install.SchedulerLimit
	case binding == nil:
		return "there is no ValidatingAdmissionPolicyBinding " + install.SchedulerLimit
	case !slices.Contains(binding.Spec.ValidationActions, admissionv1.Deny) || binding.Spec.MatchResources != nil || binding.Spec.PolicyName != policy.Name:
		return "ValidatingAdmissionPolicyBinding " + binding.Name + " does not deny it everywhere"
	case !slices.ContainsFunc(policy.Spec.MatchConditions, func(c admissionv1.MatchCondition) bool {
		return strings.HasSuffix(c.Expression, "'"+account.String()+"'")
	}):
		return "ValidatingAdmissionPolicy " + policy.Name + " is about another account"
	}
	for _, o := range f.Shipped {
		if o.GetKind() == "ValidatingAdmissionPolicy" && o.GetName() == policy.Name && !sameLimit(policy, typed[admissionv1.ValidatingAdmissionPolicy](o)) {
			return "ValidatingAdmissionPolicy " + policy.Name + " is not the one of this gangctl"
		}
	}
	return ""
}

// sameLimit compares what decides, and neither what servers add nor the account.
func sameLimit(a, b *admissionv1.ValidatingAdmissionPolicy) bool {
	same := equality.Semantic.DeepEqual
	return same(a.Spec.Validations, b.Spec.Validations) && same(a.Spec.Variables, b.Spec.Variables) && same(a.Spec.FailurePolicy, b.Spec.FailurePolicy) &&
		len(a.Spec.MatchConditions) == len(b.Spec.MatchConditions) && same(a.Spec.MatchConstraints.ResourceRules, b.Spec.MatchConstraints.ResourceRules)
}
