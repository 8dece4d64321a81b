package suspend

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/gangctl/gangctl/install"
)

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
