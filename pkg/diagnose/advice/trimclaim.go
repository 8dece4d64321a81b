package advice

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// trimClaims offers, of each request of the ResourceClaimTemplates by which members claim devices, the largest count with which the gang starts now.
func (s trimmer) trimClaims() {
	lack := false
	for _, m := range s.base.Matrices {
		lack = lack || slices.Contains(m.Constraints, placement.DRADevices)
	}
	if !lack {
		return
	}
	for _, t := range s.w.Snap.ResourceClaimTemplates {
		roles := s.claimingBy(t)
		for _, r := range t.Spec.Spec.Devices.Requests {
			if len(roles) > 0 && r.Exactly != nil && r.Exactly.AllocationMode != resourcev1.DeviceAllocationModeAll {
				s.trimRequest(t, r, roles)
			}
		}
	}
}

// claimingBy are the roles whose members claim devices by a template.
func (s trimmer) claimingBy(t *resourcev1.ResourceClaimTemplate) (roles []gang.Role) {
	for _, role := range s.g.Roles {
		if t.Namespace == s.g.Meta.Namespace && slices.ContainsFunc(role.Template.Spec.ResourceClaims, func(ref corev1.PodResourceClaim) bool { return ptr.Deref(ref.ResourceClaimTemplateName, "") == t.Name }) {
			roles = append(roles, role)
		}
	}
	return roles
}

// trimRequest offers the largest count of one request. No command does that: templates do not change, and others may use this one.
func (s trimmer) trimRequest(t *resourcev1.ResourceClaimTemplate, r resourcev1.DeviceRequest, roles []gang.Role) {
	to := func(n int64) stage.Fix {
		a := answer.Action{Kind: answer.Trim, By: answer.User, Change: map[string]any{}, Cost: answer.LessCompute, Devices: computeOf(s.g.Roles) + n*replicas(roles)}
		var members []string
		for _, role := range roles {
			members = append(members, phrase.Member(role.Name))
			a.Change[change(role.Name, "devices")] = n
		}
		a.Text = fmt.Sprintf("%s of class %s for each %s instead of %d", phrase.Count(n, "device"), r.Exactly.DeviceClassName, strings.Join(members, " and "), r.Exactly.Count)
		a.How = fmt.Sprintf("make a ResourceClaimTemplate like %s in which request %s has count %d, and name it where the job is made", t.Name, r.Name, n)
		return stage.Fix{Action: a, Apply: func(snap *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Claims(snap, t.Namespace, t.Name, s.g.ExistingPods(), func(spec *resourcev1.ResourceClaimSpec) {
				for i := range spec.Devices.Requests {
					if e := spec.Devices.Requests[i].Exactly; e != nil && spec.Devices.Requests[i].Name == r.Name {
						e.Count = n
					}
				}
			})
		}}
	}
	n, ok := placement.Largest(1, min(r.Exactly.Count-1, resourcev1.AllocationResultsMaxSize), func(n int64) bool {
		_, starts := s.try(to(n).Apply)
		return starts
	})
	if ok && !s.spent() {
		s.offer(to(n))
	}
}
