package component

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/mpijob"
)

// Validated reports whether a webhook of the Training Operator looks at a kind of job: it is installed then, also where none of its Deployments is seen. No release has one for
// MPIJobs: of these, any of its webhooks is a sign.
func Validated(v *view.View, r gang.JobReader) bool {
	if !slices.Contains(r.Controller.Images, trainingOperator) {
		return false
	}
	return slices.ContainsFunc(v.Snap.Custom[schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}], func(w *unstructured.Unstructured) bool {
		return strings.Contains(w.GetName(), trainingOperator) && (r.Resource == mpijob.Reader().Resource || slices.Contains(namedBy(w), r.Resource))
	})
}

// namedBy are the resources that the rules of a webhook configuration name.
func namedBy(configuration *unstructured.Unstructured) (all []string) {
	hooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, hook := range hooks {
		hook, _ := hook.(map[string]any)
		rules, _, _ := unstructured.NestedSlice(hook, "rules")
		for _, rule := range rules {
			rule, _ := rule.(map[string]any)
			resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
			all = append(all, resources...)
		}
	}
	return all
}
