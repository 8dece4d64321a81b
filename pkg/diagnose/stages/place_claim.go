package stages

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/placement"
)

// deviceClaims: what a role names to claim devices by must exist, and somebody must publish devices at all.
func (c *climb) deviceClaims(role placement.Role) {
	s, ns := c.w.Snap, c.g.Meta.Namespace
	if len(role.Pod.Spec.ResourceClaims) == 0 || !s.CanList("resourceclaims.resource.k8s.io", ns) || !s.CanList("resourceclaimtemplates.resource.k8s.io", ns) {
		return
	}
	var classes []string
	for _, ref := range role.Pod.Spec.ResourceClaims {
		var spec *resourcev1.ResourceClaimSpec
		switch {
		case ref.ResourceClaimName != nil:
			var have []string
			for _, claim := range s.ResourceClaims {
				if claim.Namespace == ns {
					have = append(have, claim.Name)
				}
				if claim.Namespace == ns && claim.Name == *ref.ResourceClaimName {
					spec = &claim.Spec
				}
			}
			if spec == nil {
				c.add(*c.claimsNothing(role, "ResourceClaim", *ref.ResourceClaimName, have))
				return
			}
		case ref.ResourceClaimTemplateName != nil:
			var have []string
			for _, template := range s.ResourceClaimTemplates {
				if template.Namespace == ns {
					have = append(have, template.Name)
				}
				if template.Namespace == ns && template.Name == *ref.ResourceClaimTemplateName {
					spec = &template.Spec.Spec
				}
			}
			if spec == nil {
				c.add(*c.claimsNothing(role, "ResourceClaimTemplate", *ref.ResourceClaimTemplateName, have))
				return
			}
		default:
			continue
		}
		classes = append(classes, classesOf(spec)...)
	}
	c.deviceClasses(role, classes)
}

// classesOf are the device classes that a claim asks for.
func classesOf(spec *resourcev1.ResourceClaimSpec) []string {
	var all []string
	for _, r := range spec.Devices.Requests {
		if r.Exactly != nil {
			all = append(all, r.Exactly.DeviceClassName)
		}
	}
	return all
}

func (c *climb) deviceClasses(role placement.Role, wanted []string) {
	s := c.w.Snap
	if !s.CanList("deviceclasses.resource.k8s.io", "") || !s.CanList("resourceslices.resource.k8s.io", "") {
		return
	}
	var have []string
	known := map[string]bool{}
	for _, class := range s.DeviceClasses {
		have = append(have, class.Name)
		known[class.Name] = true
	}
	for _, name := range wanted {
		if !known[name] {
			c.add(*c.claimsNothing(role, "DeviceClass", name, have))
			return
		}
	}
	if len(wanted) > 0 && len(s.ResourceSlices) == 0 {
		c.add(*found(answer.StagePlacement, answer.DRAUnallocatable, answer.Blocked, answer.Admin, "no node publishes devices that a resource claim could get: the driver of class %s does not run", wanted[0]).
			fact("class", wanted[0]).fact("role", phrase.Role(role.Name)).run("kubectl get resourceslices"))
	}
}

// claimsNothing: something that leads to devices is not there.
func (c *climb) claimsNothing(role placement.Role, kind, name string, have []string) *Finding {
	where := " in namespace " + c.g.Meta.Namespace
	if kind == "DeviceClass" {
		where = ""
	}
	f := found(answer.StagePlacement, answer.DRAUnallocatable, answer.Blocked, answer.User, "%s %q does not exist%s, so no %s gets its devices; there are: %s", kind, name, where, phrase.Member(role.Name), phrase.Names(have)).
		fact("kind", kind).fact("name", name).fact("role", phrase.Role(role.Name)).fact("have", have)
	if nearest := suggest.Nearest(name, have); nearest != "" {
		f.detail("did you mean %s?", nearest)
		if kind != "DeviceClass" { // which the claim names, not the job
			f.fix(c.otherDeviceClaim(name, nearest))
		}
	}
	return f
}

// otherDeviceClaim names another ResourceClaim, or template of one, in place of one.
func (c *climb) otherDeviceClaim(name, to string) Fix {
	return c.edited(answer.Fix, fmt.Sprintf("name %s instead of %s", to, name), map[string]any{"resourceClaim": to}, func(spec *whatif.Spec) {
		for i := range spec.Roles {
			claims := spec.Roles[i].Template.Spec.ResourceClaims
			for j := range claims {
				for _, field := range []**string{&claims[j].ResourceClaimName, &claims[j].ResourceClaimTemplateName} {
					if deref(*field) == name {
						*field = &to
					}
				}
			}
		}
	})
}

// tooFewDevices is the sentence for a gang that would fit the cluster at its best, did it not claim devices; "" for any other.
func (c *climb) tooFewDevices(role *corev1.Pod, placed int32) string {
	if len(role.Spec.ResourceClaims) == 0 || !c.fitOn(c.best(), placement.Constraints{}.Insert(placement.DRADevices)).Fits() {
		return ""
	}
	return fmt.Sprintf("the whole cluster has too few of the devices that its resource claims ask for: %d of %d members could have theirs", placed, c.g.Total())
}

// claimHolders says who has devices by resource claims, a line each.
func (c *climb) claimHolders() []string {
	devices := map[string]int{}
	for _, claim := range c.w.Snap.ResourceClaims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, user := range claim.Status.ReservedFor {
			if user.Resource == "pods" {
				devices[claim.Namespace+"/"+user.Name] += len(claim.Status.Allocation.Devices.Results)
			}
		}
	}
	var lines []string
	for _, h := range c.others() {
		n, on := 0, map[string]bool{}
		for _, p := range h.Pods {
			if has := devices[p.Namespace+"/"+p.Name]; has > 0 {
				n += has
				on[p.Spec.NodeName] = true
			}
		}
		if n > 0 {
			lines = append(lines, fmt.Sprintf("%s %s has %s on %s%s", h.Kind, h, phrase.Count(n, "device"), phrase.Names(sortedKeys(on)), c.prospects(h)))
		}
	}
	return lines
}
