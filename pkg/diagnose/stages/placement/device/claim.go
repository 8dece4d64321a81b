package device

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Claims checks that what a role names to claim devices by exists, and that a driver publishes devices at all.
func Claims(c *stage.Context, out *stage.Result, role placement.Role) {
	s, ns := c.View.Snap, c.Gang.Meta.Namespace
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
				out.Add(claimsNothing(c, role, "ResourceClaim", *ref.ResourceClaimName, have))
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
				out.Add(claimsNothing(c, role, "ResourceClaimTemplate", *ref.ResourceClaimTemplateName, have))
				return
			}
		default:
			continue
		}
		classes = append(classes, classesOf(spec)...)
	}
	deviceClasses(c, out, role, classes)
}

// classesOf are the device classes that a claim requests.
func classesOf(spec *resourcev1.ResourceClaimSpec) []string {
	var all []string
	for _, r := range spec.Devices.Requests {
		if r.Exactly != nil {
			all = append(all, r.Exactly.DeviceClassName)
		}
	}
	return all
}

func deviceClasses(c *stage.Context, out *stage.Result, role placement.Role, desired []string) {
	s := c.View.Snap
	if !s.CanList("deviceclasses.resource.k8s.io", "") || !s.CanList("resourceslices.resource.k8s.io", "") {
		return
	}
	var have []string
	known := map[string]bool{}
	for _, class := range s.DeviceClasses {
		have = append(have, class.Name)
		known[class.Name] = true
	}
	for _, name := range desired {
		if !known[name] {
			out.Add(claimsNothing(c, role, "DeviceClass", name, have))
			return
		}
	}
	if len(desired) > 0 && len(s.ResourceSlices) == 0 {
		out.Add(stage.Found(answer.DRAUnallocatable, "no node publishes devices that a resource claim could get: the driver of class %s does not run", desired[0]).As(answer.Blocked, answer.Admin).
			Fact("class", desired[0]).Fact("role", phrase.Role(role.Name)).Run("kubectl get resourceslices"))
	}
}

// claimsNothing finds that something that leads to devices is not there.
func claimsNothing(c *stage.Context, role placement.Role, kind, name string, have []string) *stage.Finding {
	where := " in namespace " + c.Gang.Meta.Namespace
	if kind == "DeviceClass" {
		where = ""
	}
	f := stage.Found(answer.DRAUnallocatable, "%s %q does not exist%s, so there are no devices for %s; there are: %s", kind, name, where, phrase.Role(role.Name), phrase.Names(have)).As(answer.Blocked, answer.User).
		Fact("kind", kind).Fact("name", name).Fact("role", phrase.Role(role.Name)).Fact("have", have)
	if nearest := suggest.Nearest(name, have); nearest != "" {
		f.Detail("did you mean %s?", nearest)
		if kind != "DeviceClass" { // which the claim names, not the job
			f.Fix(otherDeviceClaim(c, name, nearest))
		}
	}
	return f
}

// otherDeviceClaim names another ResourceClaim, or template of one, in place of one.
func otherDeviceClaim(c *stage.Context, name, to string) stage.Fix {
	return patch.Job(c.Gang, answer.Fix, fmt.Sprintf("name %s instead of %s", to, name), map[string]any{"resourceClaim": to}, func(spec *whatif.Spec) {
		for i := range spec.Roles {
			claims := spec.Roles[i].Template.Spec.ResourceClaims
			for j := range claims {
				for _, field := range []**string{&claims[j].ResourceClaimName, &claims[j].ResourceClaimTemplateName} {
					if ptr.Deref(*field, "") == name {
						*field = &to
					}
				}
			}
		}
	})
}

// Taken is the sentence for devices that others have, with the numbers of each class of which too few are free.
func Taken(c *stage.Context, f *stage.Finding) string {
	theirs := fmt.Sprintf("%d of %d members could have theirs", c.Placed(*c.Placement), c.Gang.Total())
	counts := c.Devices(c.Cluster())
	short := slices.DeleteFunc(slices.Clone(counts), func(d placement.DeviceCount) bool { return d.Requested <= d.Free })
	if claim := sharedDevices(c); len(counts) == 0 && claim != nil && claim.Status.Allocation != nil {
		f.Fact("resourceClaim", claim.Name)
		return whereShared(claim, fmt.Sprintf("%d of %d members", c.Placed(*c.Placement), c.Gang.Total()))
	}
	if len(counts) == 0 {
		return "the devices that its resource claims request are allocated to others; " + theirs
	}
	if len(short) > 0 {
		counts = short
	}
	var parts []string
	for _, d := range counts {
		text := fmt.Sprintf("%d of %d %s free", d.Free, d.Total, phrase.Verb(int(d.Free), "is", "are"))
		if d.Elsewhere > 0 {
			text += " on the nodes that it may use"
		}
		if len(short) == 0 {
			text += ", but not where its claims need them"
		}
		parts = append(parts, claiming(c, d)+", and "+text)
	}
	f.Fact("class", counts[0].Class).Fact("devices", map[string]any{"requested": counts[0].Requested, "free": counts[0].Free, "total": counts[0].Total})
	return strings.Join(parts, "; ") + "; " + theirs
}

// TooFew is the sentence for devices of which the whole cluster has too few.
func TooFew(c *stage.Context, fitted string) string {
	var parts []string
	for _, d := range c.Devices(c.Best()) {
		if d.Requested > d.Total {
			parts = append(parts, fmt.Sprintf("%s, and %s", claiming(c, d), devicesThere(d)))
		}
	}
	if claim := sharedDevices(c); len(parts) == 0 && claim != nil {
		return whereShared(claim, fitted)
	}
	if len(parts) == 0 {
		return uncountedDevices(c, fitted)
	}
	return fmt.Sprintf("%s; %s could have theirs", strings.Join(parts, "; "), fitted)
}

// uncountedDevices is the sentence for devices of which a number does not show that there are too few: they do not go together as claims need them, or are shared, or
// others would do.
func uncountedDevices(c *stage.Context, fitted string) string {
	best := c.Best()
	var parts []string
	together := false
	for _, role := range c.Request.Roles {
		claims := best.DescribeClaims(role.Pod)
		if text := fmt.Sprintf("each %s claims %s", phrase.Member(role.Name), claims); claims != "" && !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
		together = together || best.ConstrainsDevices(role.Pod)
	}
	if len(parts) == 0 {
		return fmt.Sprintf("the whole cluster has too few of the devices that its resource claims request: %s could have theirs", fitted)
	}
	text := fmt.Sprintf("%s, and the whole cluster has such devices for %s", phrase.Names(parts), fitted)
	anyOf := func() *placement.Cluster { return best.AnyDevices() }
	if together && c.Fit(c.View.Derived(best, "any devices", anyOf), nil).Fits() {
		return text + ": there are enough of each class, but not together"
	}
	if published := best.PublishedDevices(); len(published) > 0 {
		text += "; drivers publish " + phrase.Names(published)
	}
	return text
}

// devicesWhere are the nodes on which devices are counted, with their verb.
func devicesWhere(d placement.DeviceCount) string {
	if d.Elsewhere > 0 {
		return "the nodes that it may use have"
	}
	return phrase.WholeCluster
}

// devicesThere is how many devices there are; where a selector leaves out some of the class, of how many. A selector that fails for a device gives no claim any.
func devicesThere(d placement.DeviceCount) string {
	if d.Selector == "" || d.Total == d.OfClass {
		return fmt.Sprintf("%s %d", devicesWhere(d), d.Total)
	}
	text := fmt.Sprintf("of the %d that %s %d %s %s", d.OfClass, devicesWhere(d), d.Total, phrase.Verb(int(d.Total), "matches", "match"), d.Selector)
	if d.Problem != "" {
		text += " (" + d.Problem + ")"
	}
	return text
}

// claiming reads like: 2 workers claim 1 device of class gpu each, 2 in all.
func claiming(c *stage.Context, d placement.DeviceCount) string {
	var names []string
	for _, role := range c.Request.Roles {
		if name := phrase.Member(role.Name); len(role.Pod.Spec.ResourceClaims) > 0 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	noun := "member"
	if len(names) == 1 {
		noun = names[0]
	}
	who := phrase.Count(d.Members, noun) + " " + phrase.Verb(int(d.Members), "claims", "claim")
	switch {
	case d.PerMember == 0 || d.Members == 1:
		return fmt.Sprintf("%s %s of class %s", who, phrase.Count(d.Requested, "device"), d.Class)
	default:
		return fmt.Sprintf("%s %s of class %s each, %d in all", who, phrase.Count(d.PerMember, "device"), d.Class, d.Requested)
	}
}

// Allocations is the number of devices that resource claims have for pods, by namespace and name of the pod.
type Allocations map[string]int

// Of is how many a pod has.
func (a Allocations) Of(p *corev1.Pod) int { return a[p.Namespace+"/"+p.Name] }

// Allocated counts the devices that pods have by resource claims.
func Allocated(c *stage.Context) Allocations {
	return view.Once(c.View, "allocated devices", func() Allocations {
		devices := Allocations{}
		for _, claim := range c.View.Snap.ResourceClaims {
			if claim.Status.Allocation == nil {
				continue
			}
			for _, user := range claim.Status.ReservedFor {
				if user.Resource == "pods" {
					devices[claim.Namespace+"/"+user.Name] += len(claim.Status.Allocation.Devices.Results)
				}
			}
		}
		return devices
	})
}
