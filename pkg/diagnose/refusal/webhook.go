package refusal

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Hook is one webhook of a configuration of webhooks.
type Hook struct {
	// Config is the object that has it.
	Config *unstructured.Unstructured
	Name   string
	// Service and Namespace are those of the Service that serves it; empty where a URL does.
	Service, Namespace string
	// Pods reports that it is called for creates of pods.
	Pods bool
	// ignored reports that objects are accepted where it does not answer.
	ignored  bool
	selector any
}

// Hooks are the webhooks of admission that the cluster has, validating ones first; known is false where the snapshot has none of either kind, or they may
// not be listed: then it shows nothing of them.
func Hooks(v *view.View) (all []Hook, known bool) {
	const group = "admissionregistration.k8s.io"
	readable := true
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		readable = readable && v.Snap.CanList(strings.ToLower(kind)+"s."+group, "")
		for _, u := range v.Snap.Custom[schema.GroupKind{Group: group, Kind: kind}] {
			known = true
			hooks, _ := u.Object["webhooks"].([]any)
			for _, item := range hooks {
				if fields, ok := item.(map[string]any); ok {
					all = append(all, hookOf(u, fields))
				}
			}
		}
	}
	return all, known && readable
}

func hookOf(u *unstructured.Unstructured, fields map[string]any) Hook {
	h := Hook{Config: u, selector: fields["namespaceSelector"]}
	h.Name, _ = fields["name"].(string)
	h.ignored = fields["failurePolicy"] == "Ignore"
	h.Pods = createsPods(fields["rules"])
	client, _ := fields["clientConfig"].(map[string]any)
	service, _ := client["service"].(map[string]any)
	h.Service, _ = service["name"].(string)
	h.Namespace, _ = service["namespace"].(string)
	return h
}

// createsPods reports whether one of the rules of a webhook is about creates of pods.
func createsPods(rules any) bool {
	all, _ := rules.([]any)
	return slices.ContainsFunc(all, func(item any) bool {
		rule, _ := item.(map[string]any)
		has := func(field string, values ...any) bool {
			list, _ := rule[field].([]any)
			return slices.ContainsFunc(list, func(value any) bool { return value == "*" || slices.Contains(values, value) })
		}
		return has("apiGroups", "") && has("resources", "pods", "pods/*", "*/*") && has("operations", "CREATE")
	})
}

// Selects reports whether the webhook is called for objects of a namespace, as far as the labels of that are known.
func (h Hook) Selects(v *view.View, namespace string) bool {
	fields, ok := h.selector.(map[string]any)
	if !ok {
		return true
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector); err != nil {
		return true
	}
	chosen, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return true
	}
	for _, ns := range v.Snap.Namespaces {
		if ns.Name == namespace {
			return chosen.Matches(labels.Set(ns.Labels))
		}
	}
	return true
}

// unhooked reports whether the API server no longer calls the webhook of a refusal for pods of the namespace, or accepts them where it does not answer.
func unhooked(v *view.View, g *gang.Gang, r Refusal) bool {
	if !strings.Contains(r.Raw, "webhook") {
		return false // a policy of the API server's own
	}
	all, known := Hooks(v)
	for _, h := range all {
		if h.Name == r.Object && h.Selects(v, g.Meta.Namespace) && !(h.ignored && r.Kind == WebhookDown) {
			return false
		}
	}
	return known
}
