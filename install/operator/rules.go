package operator

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

// rules are those of the release that the installation uses. What it needs for
// its webhook's certificate, it gets in its own namespace only.
func (o Operator) rules(released []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var kept []rbacv1.PolicyRule
	for _, r := range released {
		if o.uses(r) {
			kept = append(kept, r)
		}
	}
	// The release may update every webhook configuration of the cluster.
	return append(kept,
		rbacv1.PolicyRule{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingwebhookconfigurations"}, Verbs: []string{"list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingwebhookconfigurations"}, Verbs: []string{"get", "update"},
			ResourceNames: []string{webhookName}})
}

func (o Operator) uses(r rbacv1.PolicyRule) bool {
	resource, _, _ := strings.Cut(r.Resources[0], "/")
	switch r.APIGroups[0] {
	case "kubeflow.org":
		return slices.Contains(o.Kinds, resource)
	case "scheduling.volcano.sh":
		return o.GangScheduler == "volcano"
	case "scheduling.x-k8s.io":
		return o.GangScheduler != "" && o.GangScheduler != "volcano"
	case "admissionregistration.k8s.io":
		return false
	case "autoscaling":
		return slices.Contains(o.Kinds, "pytorchjobs")
	case "rbac.authorization.k8s.io":
		return slices.Contains(o.Kinds, "mpijobs")
	}
	switch r.Resources[0] {
	case "secrets":
		return false
	case "configmaps", "pods/exec", "serviceaccounts": // of an MPI launcher
		return slices.Contains(o.Kinds, "mpijobs")
	}
	return true
}

// certificate is the empty Secret that the operator fills, and the right to do so.
func (o Operator) certificate() ([]*unstructured.Unstructured, error) {
	account := rbac.Account{Namespace: o.Namespace, Name: Name}
	objects := append([]any{
		&corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: secretName}},
	}, rbac.Objects(Name+"-webhook-cert", account.Subject(), o.Namespace, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "update"}, ResourceNames: []string{secretName}},
	})...)
	var all []*unstructured.Unstructured
	for _, object := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{Object: content}
		unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
		all = append(all, u)
	}
	return all, nil
}
