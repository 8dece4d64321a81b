package install

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/environment"
)

// The oldest servers that serve the policy can evaluate it, or they would refuse to store it. What it decides is tested on a real server (test/e2e).
func TestPolicyOnOldServers(t *testing.T) {
	policy := typed[admissionv1.ValidatingAdmissionPolicy](t, objectsOf(t, scheduler()), "ValidatingAdmissionPolicy", SchedulerLimit)
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(version.MajorMinor(1, 30)))
	if err != nil {
		t.Fatal(err)
	}
	inputs := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	for _, v := range policy.Spec.Variables {
		if result := compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, inputs, environment.NewExpressions); result.Error != nil {
			t.Errorf("variable %s: %v", v.Name, result.Error)
		}
	}
	var all []cel.ExpressionAccessor
	for _, v := range policy.Spec.Validations {
		all = append(all, &validating.ValidationCondition{Expression: v.Expression})
	}
	for _, c := range policy.Spec.MatchConditions {
		all = append(all, &validating.ValidationCondition{Expression: c.Expression})
	}
	if errs := compiler.CompileCondition(all, inputs, environment.NewExpressions).CompilationErrors(); len(errs) > 0 {
		t.Error(errs)
	}
}
