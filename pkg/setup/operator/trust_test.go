package operator

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

// Only who has rights in the whole cluster can have made an operator: a name, an image, labels and rights in one namespace are anybody's.
func TestTrusted(t *testing.T) {
	in := func(namespace string) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "training-operator", Labels: map[string]string{"app.kubernetes.io/part-of": "gangctl"}}}
		d.Spec.Template.Spec = corev1.PodSpec{ServiceAccountName: "op", Containers: []corev1.Container{{Image: "x/training-operator:v1-93c5489"}}}
		return d
	}
	role := func(name string, r rbacv1.PolicyRule) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{r}}
	}
	subject := func(namespace string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "op"}}
	}
	ref := func(name string) rbacv1.RoleRef { return rbacv1.RoleRef{Kind: "ClusterRole", Name: name} }
	policy := &rbac.Policy{
		ClusterRoles: []*rbacv1.ClusterRole{
			role("operator", rule("kubeflow.org", []string{"tfjobs/status"}, "update")), role("reader", rule("*", []string{"*"}, "get", "list", "watch")), role("all", rule("*", []string{"*"}, "*")),
		},
		ClusterRoleBindings: []*rbacv1.ClusterRoleBinding{{RoleRef: ref("operator"), Subjects: subject("ml")}, {RoleRef: ref("reader"), Subjects: subject("reads")}, {RoleRef: ref("all"), Subjects: subject("admin")}},
		RoleBindings:        []*rbacv1.RoleBinding{{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a"}, RoleRef: ref("all"), Subjects: subject("team-a")}},
	}
	trusted, others := Trusted(Find([]*appsv1.Deployment{in("kubeflow"), in("ml"), in("reads"), in("admin"), in("team-a")}), policy, "kubeflow")
	var names [2][]string
	for i, all := range [][]Operator{trusted, others} {
		for _, o := range all {
			names[i] = append(names[i], o.Deployment.Namespace)
		}
	}
	if want := [2][]string{{"kubeflow", "ml", "admin"}, {"reads", "team-a"}}; !slices.Equal(names[0], want[0]) || !slices.Equal(names[1], want[1]) {
		t.Errorf("got %q, want %q", names, want)
	}
}
