package stages

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/pkg/placement/quota"
)

// overheads adds to the findings of a stage what the runtime of the pods adds to their requests: Kubernetes charges it, and no one reads it
// in the job.
func overheads(c *stage.Context, findings []stage.Finding) {
	for i := range findings {
		f := &findings[i]
		resource, _ := f.Facts["resource"].(string)
		name := quota.Resource(corev1.ResourceName(resource)) // which a quota counts as requests.cpu, or limits.cpu
		for _, role := range c.Gang.Roles {
			runtime := role.Template.Spec.RuntimeClassName
			if runtime == nil || name == "" {
				continue
			}
			pod := c.View.Sample(c.Gang, role)
			charged := podrequest.Of(pod)
			if quota.IsLimit(corev1.ResourceName(resource)) {
				charged = podrequest.Limits(pod)
			}
			sum, extra := podrequest.Amount(name, charged[name]), podrequest.Amount(name, pod.Spec.Overhead[name])
			if extra > 0 && sum > extra {
				f.Detail("%s of each %s: %s = %s + %s of %s, its RuntimeClass", name, phrase.Member(role.Name), phrase.Quantity(name, sum), phrase.Quantity(name, sum-extra),
					phrase.Quantity(name, extra), *runtime)
			}
		}
	}
}

// runtimeRules adds to the findings of placement which labels of nodes the RuntimeClass of the pods requires, where nodes are left out for that: no one
// reads it in the job.
func runtimeRules(c *stage.Context, r stage.Result) {
	for i := range r.Findings {
		for _, class := range c.View.Snap.RuntimeClasses {
			if class.Scheduling == nil || len(class.Scheduling.NodeSelector) == 0 {
				continue
			}
			var members []string
			for _, role := range c.Gang.Roles {
				named := role.Template.Spec.RuntimeClassName
				if named != nil && *named == class.Name && len(r.Matrices[role.Name].Rejected(placement.NodeSelector)) > 0 {
					members = append(members, phrase.Member(role.Name))
				}
			}
			if len(members) > 0 {
				r.Findings[i].Detail("RuntimeClass %s requires nodes with %s for each %s", class.Name, labels.Set(class.Scheduling.NodeSelector), phrase.And(members))
			}
		}
	}
}
