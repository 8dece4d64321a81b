package gang

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Writer writes one dialect. What it writes, the dialect's [Reader] reads as the same gang.
type Writer struct {
	Dialect Dialect
	// Versions are the API versions in which the group object is written, the preferred one first. Nil without objects.
	Versions []schema.GroupVersion
	// Scheduler is the schedulerName of members whose template has none; empty leaves them to the cluster's default.
	Scheduler string
	// Queues reports whether the group object names the queue in which the gang waits.
	Queues bool
	// Prefers reports whether the annotation of the domains that members prefer is the dialect's way to state them: it has none of its own, and
	// gangctl's scheduler reads it.
	Prefers bool
	// Object makes the group object, in one of Versions; nil without objects.
	Object func(d Declaration, version schema.GroupVersion) *unstructured.Unstructured
	// SetGroup makes the pods of a template, those of a role, members of the gang.
	SetGroup func(pod *corev1.PodTemplateSpec, d Declaration, role string)
}

// NewGroup is a group object with what those of most dialects have in common: metadata, spec.minMember, spec.minResources,
// spec.queue and spec.priorityClassName. It is the inverse of [DecodeGroup].
func NewGroup(d Declaration, version schema.GroupVersion) *unstructured.Unstructured {
	spec := map[string]any{"minMember": int64(d.MinMember)}
	if len(d.MinResources) > 0 {
		resources := map[string]any{}
		for name, quantity := range d.MinResources {
			resources[string(name)] = quantity.String()
		}
		spec["minResources"] = resources
	}
	if d.Queue != "" {
		spec["queue"] = d.Queue
	}
	if d.PriorityClass != "" {
		spec["priorityClassName"] = d.PriorityClass
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(version.WithKind("PodGroup"))
	u.SetName(d.Key.Name)
	u.SetNamespace(d.Key.Namespace)
	return u
}
