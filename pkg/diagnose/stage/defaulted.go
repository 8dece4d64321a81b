package stage

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Defaulted adds to a finding about a resource which containers of a role state none of it, so that a LimitRange decides.
func (c *Context) Defaulted(f *Finding, role string, name corev1.ResourceName) {
	template := c.Gang.RoleByName(role)
	if template == nil {
		return
	}
	for _, container := range template.Template.Spec.Containers {
		_, requested := container.Resources.Requests[name]
		if _, limited := container.Resources.Limits[name]; requested || limited {
			continue
		}
		for _, lr := range c.View.Snap.LimitRanges {
			for _, item := range lr.Spec.Limits {
				q, ok := item.DefaultRequest[name]
				if !ok {
					q, ok = item.Default[name]
				}
				if !ok || lr.Namespace != c.Gang.Meta.Namespace || item.Type != corev1.LimitTypeContainer {
					continue
				}
				text := fmt.Sprintf("container %s states no %s: %s is the default of LimitRange %s", container.Name, name, q.String(), lr.Name)
				if !slices.Contains(f.Details, text) {
					f.Detail("%s", text).See("v1", "LimitRange", lr, ".spec.limits").Fact("limitRange", lr.Name)
				}
			}
		}
	}
}
