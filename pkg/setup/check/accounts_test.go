package check

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

// without takes verbs on a resource out of a role.
func (s *fixture) without(role, resource string) {
	r := s.f.Policy.ClusterRole(role)
	var kept []rbacv1.PolicyRule
	for _, rule := range rbac.Atoms(r.Rules) {
		if rule.Resources[0] != resource {
			kept = append(kept, rule)
		}
	}
	r.Rules = kept
}

// binds gives a ClusterRole to an account.
func (s *fixture) binds(role, namespace, account string) {
	s.f.Policy.ClusterRoleBindings = append(s.f.Policy.ClusterRoleBindings, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role + "-" + namespace},
		RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: account}}})
}

func (s *fixture) unbind(name string) {
	var kept []*rbacv1.ClusterRoleBinding
	for _, b := range s.f.Policy.ClusterRoleBindings {
		if b.Name != name {
			kept = append(kept, b)
		}
	}
	s.f.Policy.ClusterRoleBindings = kept
}

// unbindIn takes a binding in a namespace away.
func (s *fixture) unbindIn(name string) {
	s.f.Policy.RoleBindings = slices.DeleteFunc(s.f.Policy.RoleBindings, func(b *rbacv1.RoleBinding) bool { return b.Name == name })
}

func TestSchedulerRules(t *testing.T) {
	test(t, Cluster(), "rbac-scheduler", []expected{
		{name: "healthy", status: OK, wantText: []string{"account gangctl-system/gang-scheduler", "none missing"}},
		{name: "a rule is missing", change: func(s *fixture) { s.without("gangctl:gang-scheduler", "podgroups/status") }, status: Fail,
			wantText: []string{"may not patch podgroups.", "kind: ClusterRole\n", "kind: ClusterRoleBinding\n", "name: gang-scheduler\n"}, never: []string{"*", "pods/binding"}},
		{name: "a binding is missing", change: func(s *fixture) { s.unbind("gangctl:gang-scheduler:kube-scheduler") }, status: Fail, wantText: []string{"it cannot place pods", "pods/binding"}},
		{name: "what is for explanations only is a warning", change: func(s *fixture) { s.unbind("gangctl:gang-scheduler:explain") }, status: Warn, wantText: []string{"has less detail"}},
		{name: "what only takes places back is a warning", change: func(s *fixture) { s.unbind("gangctl:gang-scheduler:policy") }, status: Warn, wantText: []string{"gangs that are not whole"}},
		{name: "what only signs answers is a warning", change: func(s *fixture) { s.unbindIn("gangctl:gang-scheduler:answers") }, status: Warn, wantText: []string{"cannot sign"}},
		{name: "what users need to check a signature is no need of its own", change: func(s *fixture) { s.unbindIn("gangctl:gang-scheduler:answers-reader") }, status: OK},
		{name: "its lease", change: func(s *fixture) { s.f.Policy.Roles = nil }, status: Fail, wantText: []string{"it cannot elect a leader", "kind: Role\n", "namespace: gangctl-system"}},
		{name: "it may do everything", change: func(s *fixture) {
			s.f.Policy = rbac.Policy{ClusterRoles: append(s.f.Policy.ClusterRoles, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "cluster-admin"}, Rules: []rbacv1.PolicyRule{rule("*", "*", "*")}}),
				ClusterRoleBindings: []*rbacv1.ClusterRoleBinding{{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "cluster-admin"}, Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:serviceaccounts"}}}}}
		}, status: OK},
		{name: "it runs under another account", change: func(s *fixture) { s.deployment("gang-scheduler").Spec.Template.Spec.ServiceAccountName = "" }, status: Fail, wantText: []string{"account gangctl-system/default"}},
		{name: "no Deployment, but its account", change: func(s *fixture) {
			s.remove("gang-scheduler")
			s.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: install.DefaultNamespace, Name: "gang-scheduler", Labels: map[string]string{install.LabelPartOf: install.PartOf}}})
		}, status: OK},
		{name: "not installed", change: func(s *fixture) { s.remove("gang-scheduler") }},
	})
}

// The right to patch jobs is limited by a policy, which has to be there, to deny, and to be about the account.
func TestSchedulerLimits(t *testing.T) {
	policy := func(s *fixture) *admissionv1.ValidatingAdmissionPolicy { return s.f.AdmissionPolicies[0] }
	test(t, Cluster(), "rbac-limit", []expected{
		{name: "healthy", status: OK, wantText: []string{"limited by ValidatingAdmissionPolicy gang-scheduler.gangctl.dev"}},
		{name: "not there, or not served", change: func(s *fixture) { s.f.AdmissionPolicies = nil }, status: Warn, wantText: []string{"may change all of a job: there is no ValidatingAdmissionPolicy ", "gangctl install scheduler; Kubernetes"}},
		{name: "not bound", change: func(s *fixture) { s.f.AdmissionBindings = nil }, status: Warn, wantText: []string{"no ValidatingAdmissionPolicyBinding"}},
		{name: "only warned of", change: func(s *fixture) {
			s.f.AdmissionBindings[0].Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Warn}
		}, status: Warn, wantText: []string{"does not deny it everywhere"}},
		{name: "bound in some namespaces", change: func(s *fixture) { s.f.AdmissionBindings[0].Spec.MatchResources = &admissionv1.MatchResources{} }, status: Warn, wantText: []string{"does not deny it everywhere"}},
		{name: "of another account", change: func(s *fixture) { s.deployment("gang-scheduler").Spec.Template.Spec.ServiceAccountName = "boss" }, status: Warn, wantText: []string{"account gangctl-system/boss", "is about another account"}},
		{name: "changed", change: func(s *fixture) { policy(s).Spec.Validations = policy(s).Spec.Validations[1:] }, status: Warn, wantText: []string{"is not the one of this gangctl"}},
		{name: "it may not patch jobs", change: func(s *fixture) {
			s.f.Policy.ClusterRoles = slices.DeleteFunc(s.f.Policy.ClusterRoles, func(r *rbacv1.ClusterRole) bool { return r.Name == policyRole })
		}},
	})
}

func TestOperatorRules(t *testing.T) {
	gang := func(s *fixture) { s.operatorArgs("--gang-scheduler-name=gang-scheduler") }
	test(t, Cluster(), "rbac-operator", []expected{
		{name: "healthy", status: OK},
		{name: "gangs are off: rights on PodGroups are not needed", change: func(s *fixture) { s.without("training-operator", "podgroups") }, status: OK},
		{name: "gangs are on: they are", change: func(s *fixture) {
			gang(s)
			s.without("training-operator", "podgroups")
		}, status: Fail, wantText: []string{"may not create, delete, get, list, update, watch podgroups.scheduling.x-k8s.io: it cannot create gangs", "- podgroups\n", "name: training-operator\n  namespace: kubeflow\n"}, never: []string{"*", "tfjobs"}},
		{name: "it cannot create pods", change: func(s *fixture) { s.without("training-operator", "pods") }, status: Fail, wantText: []string{"it cannot create members"}},
		{name: "no Deployment: its mode is unknown", change: func(s *fixture) {
			s.remove("training-operator")
			s.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeflow", Name: "training-operator"}})
			s.without("training-operator", "podgroups")
		}, status: Warn, wantText: []string{"podgroups.scheduling.x-k8s.io"}},
		{name: "no rights are proposed for what a tenant made", change: func(s *fixture) { s.Deployment("team-a", "training-operator", v194) }, status: OK, never: []string{"team-a"}},
		{name: "nor for an account of its name", change: func(s *fixture) {
			s.remove("training-operator")
			s.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "training-operator"}})
		}},
		{name: "none", change: func(s *fixture) { s.remove("training-operator") }},
	})
}

// What is printed as the fix is, to the letter, what was missing.
func TestFixesFix(t *testing.T) {
	s := healthy(t)
	s.operatorArgs("--gang-scheduler-name=gang-scheduler")
	s.without("training-operator", "podgroups")
	s.unbind("gangctl:gang-scheduler:kube-scheduler")
	s.f.Policy.Roles = nil
	f := s.facts()
	for _, id := range []string{"rbac-operator", "rbac-scheduler"} {
		o, _ := outcomeOf(t, Cluster(), id, f)
		for _, finding := range o.Findings {
			applied(t, &f.Policy, finding.Fix)
		}
		// Kubernetes' own role, of which only the binding was looked for.
		if again, _ := outcomeOf(t, Cluster(), id, f); again.Status != OK {
			t.Errorf("%s after its fix: %+v", id, again)
		}
	}
}

// applied puts the objects of a fix into the book.
func applied(t *testing.T, book *rbac.Policy, fix string) {
	t.Helper()
	for doc := range strings.SplitSeq(fix, "---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(doc), &kind); err != nil {
			t.Fatal(err)
		}
		switch kind.Kind {
		case "ClusterRole":
			book.ClusterRoles = append(book.ClusterRoles, parsed[rbacv1.ClusterRole](t, doc))
		case "ClusterRoleBinding":
			book.ClusterRoleBindings = append(book.ClusterRoleBindings, parsed[rbacv1.ClusterRoleBinding](t, doc))
		case "Role":
			book.Roles = append(book.Roles, parsed[rbacv1.Role](t, doc))
		case "RoleBinding":
			book.RoleBindings = append(book.RoleBindings, parsed[rbacv1.RoleBinding](t, doc))
		case "":
		default:
			t.Errorf("a fix holds a %s", kind.Kind)
		}
	}
}

func parsed[T any](t *testing.T, doc string) *T {
	t.Helper()
	into := new(T)
	if err := yaml.UnmarshalStrict([]byte(doc), into); err != nil {
		t.Fatal(err)
	}
	return into
}
