package history

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/submit/redact"
)

// roles are what the spec requests.
func roles(g *gang.Gang) []Role {
	all := make([]Role, 0, len(g.Roles))
	for _, r := range g.Roles {
		role := Role{Name: strings.ToLower(r.Name), Replicas: r.Replicas, Requests: request.OfTemplate(r.Template.Spec)}
		for _, c := range r.Template.Spec.Containers {
			if c.Name == r.Main {
				role.Image, role.Command = c.Image, redact.Args(slices.Concat(c.Command, c.Args))
			}
		}
		all = append(all, role)
	}
	return all
}

// devices is how many GPUs a pod requests.
func devices(spec corev1.PodSpec) int64 { return request.GPUs(request.OfTemplate(spec)) }
