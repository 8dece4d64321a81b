package stages

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
)

// overheads adds to the findings of a stage what the runtime of the pods adds to their requests: Kubernetes charges it, and no one reads it
// in the job.
func overheads(c *stage.Context, findings []stage.Finding) {
	for i := range findings {
		f := &findings[i]
		resource, _ := f.Facts["resource"].(string)
		name := corev1.ResourceName(resource)
		for _, role := range c.Gang.Roles {
			runtime := role.Template.Spec.RuntimeClassName
			if runtime == nil || name == "" {
				continue
			}
			pod := c.View.Sample(c.Gang, role)
			sum, extra := podrequest.Amount(name, podrequest.Of(pod)[name]), podrequest.Amount(name, pod.Spec.Overhead[name])
			if extra > 0 {
				f.Detail("%s of each %s: %s = %s + %s of %s, its RuntimeClass", name, phrase.Member(role.Name), phrase.Quantity(name, sum), phrase.Quantity(name, sum-extra),
					phrase.Quantity(name, extra), *runtime)
			}
		}
	}
}
