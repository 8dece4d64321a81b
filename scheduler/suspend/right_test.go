package suspend

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/gangctl/gangctl/install"
)

// What limits the account is about every kind that is suspended, and leaves what is written of one.
func TestThePolicyLeavesWhatIsWritten(t *testing.T) {
	var policy admissionv1.ValidatingAdmissionPolicy
	if err := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(install.SchedulerPolicyRBAC()), 4096).Decode(&policy); err != nil || policy.Kind != "ValidatingAdmissionPolicy" {
		t.Fatalf("the first document is a %s, %v", policy.Kind, err)
	}
	for _, resource := range Resources() {
		if !slices.ContainsFunc(policy.Spec.MatchConstraints.ResourceRules, func(r admissionv1.NamedRuleWithOperations) bool {
			return slices.Contains(r.APIGroups, resource.Group) && slices.Contains(r.Resources, resource.Resource)
		}) {
			t.Errorf("it does not limit %s", resource.GroupResource())
		}
	}
	text := ""
	for _, v := range policy.Spec.Validations {
		text += v.Expression
	}
	for _, v := range policy.Spec.Variables {
		text += v.Expression
	}
	for _, name := range append([]string{Label, BecauseAnnotation}, slices.Concat(fieldOf("batch")[1:], fieldOf(operatorGroup)[1:])...) {
		if !strings.Contains(text, "'"+name+"'") {
			t.Errorf("it refuses changes of %s", name)
		}
	}
}

// The one role that lets jobs be suspended lets them be found and resumed again:
// the others may be left out.
func TestTheRoleIsEnough(t *testing.T) {
	var rules []rbacv1.PolicyRule
	for documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(install.SchedulerPolicyRBAC()), 4096); ; {
		var role rbacv1.ClusterRole
		if err := documents.Decode(&role); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, role.Rules...)
	}
	for _, resource := range Resources() {
		for _, verb := range []string{"get", "list", "patch"} {
			if !slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
				return slices.Contains(r.APIGroups, resource.Group) && slices.Contains(r.Resources, resource.Resource) && slices.Contains(r.Verbs, verb)
			}) {
				t.Errorf("it does not grant %s %s", verb, resource.GroupResource())
			}
		}
	}
}
