package placement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// misread adds that cpu was probably meant in thousandths of a core: each member requests more cores than any node has, and a thousandth of that fits.
func misread(c *stage.Context, f *stage.Finding, role placement.Role, r placement.Room) {
	if r.Resource != corev1.ResourceCPU || r.PerMember <= r.LargestFree || r.PerMember/1000 > r.LargestFree || r.PerMember%1000 != 0 {
		return
	}
	template := c.Gang.RoleByName(phrase.Role(role.Name))
	if template == nil {
		return
	}
	for _, container := range template.Template.Spec.Containers {
		q := container.Resources.Requests[r.Resource]
		if q.Value() < fewestMilli {
			continue
		}
		meant := resource.NewMilliQuantity(q.Value(), resource.DecimalSI)
		f.Detail("%s are whole cores: were %sm meant?", phrase.Amount(r.Resource, request.Amount(r.Resource, q)), phrase.Quantity(r.Resource, request.Amount(r.Resource, q))).
			Fix(patch.Job(c.Gang, answer.Trim, fmt.Sprintf("%s cpu for container %s of each %s", meant, container.Name, phrase.Noun(r)),
				map[string]any{patch.Key(*template, container.Name, r.Resource): meant.String()},
				func(spec *whatif.Spec) { patch.Lower(spec.Role(template.Name), container.Name, r.Resource, *meant) }))
	}
}

// fewestMilli is from which number of cores on a request looks like one of thousandths.
const fewestMilli = 100
