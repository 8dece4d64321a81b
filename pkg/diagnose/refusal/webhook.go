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
	// rules are for which requests it is called; none are known of one without.
	rules []any
	// ignored reports that objects are accepted where it does not answer.
	ignored bool
	// namespaces and objects select, by labels, what it is called for. Its matchConditions are not evaluated.
	namespaces, objects any
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
	h := Hook{Config: u, namespaces: fields["namespaceSelector"], objects: fields["objectSelector"]}
	h.Name, _ = fields["name"].(string)
	h.ignored = fields["failurePolicy"] == "Ignore"
	h.rules, _ = fields["rules"].([]any)
	client, _ := fields["clientConfig"].(map[string]any)
	service, _ := client["service"].(map[string]any)
	h.Service, _ = service["name"].(string)
	h.Namespace, _ = service["namespace"].(string)
	return h
}

// Creates reports whether one of the rules of the webhook is about creates of a resource, such as pods or jobs.batch.
func (h Hook) Creates(resource string) bool {
	name, group, _ := strings.Cut(resource, ".")
	return slices.ContainsFunc(h.rules, func(item any) bool {
		rule, _ := item.(map[string]any)
		has := func(field string, values ...any) bool {
			list, _ := rule[field].([]any)
			return slices.ContainsFunc(list, func(value any) bool { return value == "*" || slices.Contains(values, value) })
		}
		return rule["scope"] != "Cluster" && has("apiGroups", group) && has("resources", name, name+"/*", "*/*") && has("operations", "CREATE")
	})
}

// Concerns reports whether the webhook may be called for creates of a resource for a gang: by its rules, and by the labels of the namespace and of the pods, as far as these are
// known. Those of other objects, and of the namespace where it is not seen, are taken to be selected. The resource is empty where it is not known.
func (h Hook) Concerns(v *view.View, g *gang.Gang, resource, role string) bool {
	if resource != "" && len(h.rules) > 0 && !h.Creates(resource) {
		return false
	}
	for _, ns := range v.Snap.Namespaces {
		if ns.Name == g.Meta.Namespace && !selects(h.namespaces, ns.Labels, nil) {
			return false
		}
	}
	if resource != "pods" {
		return true
	}
	return slices.ContainsFunc(g.Roles, func(r gang.Role) bool {
		return (role == "" || r.Name == role) && selects(h.objects, v.Sample(g, r).Labels, g.Reader.NameLabels)
	})
}

// selects reports whether a selector of a webhook selects what has some labels; one that cannot be read may. Labels of the domains of some others may be missing here.
func selects(selector any, have map[string]string, controllers []string) bool {
	fields, ok := selector.(map[string]any)
	if !ok {
		return true
	}
	var read metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &read); err != nil {
		return true
	}
	chosen, err := metav1.LabelSelectorAsSelector(&read)
	if err != nil || chosen.Matches(labels.Set(have)) {
		return true
	}
	requirements, _ := chosen.Requirements()
	return slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		_, known := have[r.Key()]
		domain, _, prefixed := strings.Cut(r.Key(), "/")
		return !known && prefixed && slices.ContainsFunc(controllers, func(label string) bool { return strings.HasPrefix(label, domain+"/") })
	})
}

// unhooked reports whether the API server no longer calls the webhook of a refusal for such an object of the gang, or accepts them where it does not answer.
func unhooked(v *view.View, g *gang.Gang, r Refusal) bool {
	if !strings.Contains(r.Raw, "webhook") {
		return false // a policy of the API server's own
	}
	all, known := Hooks(v)
	for _, h := range all {
		resource := r.Resource()
		if resource == "pods" && len(h.rules) > 0 && !h.Creates(resource) {
			resource = "" // messages about webhooks seldom name the object
		}
		if h.Name == r.Object && h.Concerns(v, g, resource, RoleOf(g, r)) && !(h.ignored && r.Kind == WebhookDown) {
			return false
		}
	}
	return known
}
