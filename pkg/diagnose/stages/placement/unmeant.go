package placement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// misread adds that cpu was probably meant in thousandths of a core: each member requests more cores than any machine has, and a thousandth of that fits.
func misread(c *stage.Context, f *stage.Finding, role placement.Role, r placement.Room) {
	if r.Resource != corev1.ResourceCPU || r.PerMember/1000 > r.LargestFree || r.PerMember%1000 != 0 || r.PerMember < beyond*mostCPU(c) {
		return
	}
	template := c.Gang.RoleByName(phrase.Role(role.Name))
	if template == nil {
		return
	}
	fewest := int64(fewestMilli)
	if request.Device(request.Of(role.Pod)) != "" {
		fewest = wholeCore
	}
	for _, container := range template.Template.Spec.Containers {
		q := container.Resources.Requests[r.Resource]
		if q.Value() < fewest {
			continue
		}
		meant := resource.NewMilliQuantity(q.Value(), resource.DecimalSI)
		f.Detail("%s are whole cores: were %sm meant?", phrase.Amount(r.Resource, request.Amount(r.Resource, q)), phrase.Quantity(r.Resource, request.Amount(r.Resource, q))).
			Fix(patch.Job(c.Gang, answer.Trim, fmt.Sprintf("%s cpu for container %s of each %s", meant, container.Name, phrase.Noun(r)),
				map[string]any{patch.Key(*template, container.Name, r.Resource): meant.String()},
				func(spec *whatif.Spec) { patch.Lower(spec.Role(template.Name), container.Name, r.Resource, *meant) }))
	}
}

// mostCPU is how much cpu the node has that has most.
func mostCPU(c *stage.Context) int64 {
	type mostCPU struct{}
	return view.Once(c.View, mostCPU{}, func() (most int64) {
		for _, n := range c.Cluster().Nodes() {
			most = max(most, request.Amount(corev1.ResourceCPU, n.Status.Allocatable[corev1.ResourceCPU]))
		}
		return most
	})
}

const (
	// fewestMilli is from which number of cores on a request looks like one of thousandths; next to devices less than a whole core is not meant.
	fewestMilli, wholeCore = 100, 1000
	// beyond is how many times as many cores as the largest node has are requested by a slip, and not for a larger node.
	beyond = 2
)
