package advice

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/command"
	"github.com/gangctl/gangctl/pkg/explain/ladder"
	"github.com/gangctl/gangctl/pkg/explain/phrase"
	"github.com/gangctl/gangctl/pkg/explain/quota"
	"github.com/gangctl/gangctl/pkg/explain/whatif"
	"github.com/gangctl/gangctl/pkg/fit"
	"github.com/gangctl/gangctl/pkg/snapshot"
	"github.com/gangctl/gangctl/pkg/workload"
)

// maxReshape is into how many members a job is split at most.
const maxReshape = 512

// resubmit is a fix that submits the job again with another spec.
func (s *search) resubmit(a answer.Action, edit func(*whatif.Spec)) ladder.Fix {
	return ladder.Fix{Action: a, Apply: func(snap *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Resubmit(snap, s.g, edit) }}
}

// request is what a role's containers ask for, with limits where they give no request.
func request(role workload.Role) corev1.ResourceList {
	return whatif.Needs([]workload.Role{{Replicas: 1, Template: role.Template}}, 1)
}

// patch changes a role of the job in place.
func (s *search) patch(role string, steps ...command.Patch) string {
	return ladder.PatchRole(s.g.Subject, ladder.PodSelector(s.g.Subject), role, steps...)
}

// resize changes the number of a role's members, and the gang's minimum with it: a gang that needs all of its members
// needs all of the new ones. It is empty where the minimum is written on pods, which no patch of the job reaches.
func (s *search) resize(role workload.Role, n int64, steps ...command.Patch) string {
	total := s.g.Total() - role.Replicas + int32(n)
	minMember := min(s.g.Min, total)
	if s.g.Min >= s.g.Total() {
		minMember = total
	}
	if minMember == s.g.Min || s.g.Decl == nil {
		return s.patch(role.Name, steps...)
	}
	first := ladder.PatchMin(s.g, minMember)
	if first == "" {
		return ""
	}
	return command.Then(first, s.patch(role.Name, steps...))
}

// fewer offers the most members with which the gang starts now, for each role with more than one.
func (s *search) fewer() {
	for _, role := range s.g.Roles {
		if role.Replicas < 2 {
			continue
		}
		fix := func(n int64) ladder.Fix {
			return s.resubmit(answer.Action{
				Kind: answer.Fewer, By: answer.User, Change: map[string]any{change(role.Name, "replicas"): n},
				Text: fmt.Sprintf("%s instead of %d", phrase.Count(n, phrase.Member(role.Name)), role.Replicas), Cost: "less compute",
				Command: s.resize(role, n, command.Patch{Op: "replace", Path: "/replicas", Value: n}),
			}, func(spec *whatif.Spec) { spec.Role(role.Name).Replicas = int32(n) })
		}
		n, ok := fit.Largest(1, int64(role.Replicas)-1, func(n int64) bool {
			_, starts := s.try(fix(n).Apply)
			return starts
		})
		if ok {
			s.offer(fix(n))
		}
	}
}

// reshape offers the fewest members, of the same devices in all, with which the gang starts now.
func (s *search) reshape() {
	for _, role := range s.g.Roles {
		req := request(role)
		device := phrase.Device(req)
		q := req[device]
		per := q.Value()
		if device == "" || per < 2 || !onlyMain(role, device) {
			continue
		}
		total := per * int64(role.Replicas)
		for k := int64(role.Replicas) + 1; k <= min(total, maxReshape); k++ {
			if total%k == 0 && s.offer(s.reshaped(role, device, k, total/k, per)) {
				break
			}
		}
	}
}

// onlyMain reports whether no other container asks for the device.
func onlyMain(role workload.Role, device corev1.ResourceName) bool {
	return !slices.ContainsFunc(role.Template.Spec.Containers, func(c corev1.Container) bool {
		_, asks := c.Resources.Requests[device]
		_, limited := c.Resources.Limits[device]
		return (asks || limited) && c.Name != role.Main
	})
}

// reshaped splits a role into k members with fewer devices each. What else they ask for shrinks in proportion.
func (s *search) reshaped(role workload.Role, device corev1.ResourceName, k, gpus, per int64) ladder.Fix {
	i := slices.IndexFunc(role.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == role.Main })
	resources := scaled(role.Template.Spec.Containers[i].Resources, gpus, per)
	return s.resubmit(answer.Action{
		Kind: answer.Reshape, By: answer.User,
		Change: map[string]any{change(role.Name, "replicas"): k, change(role.Name, "gpu"): gpus},
		Text:   fmt.Sprintf("%s x %s, the same %d in all", phrase.Count(k, phrase.Member(role.Name)), phrase.Amount(device, gpus), k*gpus),
		Command: s.resize(role, k, command.Patch{Op: "replace", Path: "/replicas", Value: k},
			command.Patch{Op: "replace", Path: fmt.Sprintf("/template/spec/containers/%d/resources", i), Value: resources}),
	}, func(spec *whatif.Spec) {
		r := spec.Role(role.Name)
		r.Replicas = int32(k)
		r.Template.Spec.Containers[i].Resources = resources
	})
}

func scaled(r corev1.ResourceRequirements, num, den int64) corev1.ResourceRequirements {
	out := *r.DeepCopy()
	whatif.Scale(out.Requests, num, den)
	whatif.Scale(out.Limits, num, den)
	return out
}

// unit is the step in which a resource is trimmed: whole cores, Gi and devices.
func unit(name corev1.ResourceName) int64 {
	switch name {
	case corev1.ResourceCPU:
		return 1000
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return 1 << 30
	}
	return 1
}

// trim offers the largest request, of each resource that is short, with which the gang starts now.
func (s *search) trim() {
	short := s.short()
	for _, role := range s.g.Roles {
		req := request(role)
		for _, c := range role.Template.Spec.Containers {
			for _, name := range short {
				if name == phrase.Device(req) && c.Name == role.Main && s.base.Primary.Code != answer.TooBig {
					continue // fewer devices is less compute: reshape and fewer are the ways to that
				}
				s.trimOne(role, c, name)
			}
		}
	}
}

// short are the resources of which too little is left for somebody.
func (s *search) short() []corev1.ResourceName {
	names := map[corev1.ResourceName]bool{}
	for _, f := range s.base.Findings() {
		if name, ok := f.Facts["resource"].(string); ok {
			names[quota.Resource(corev1.ResourceName(name))] = true
		}
	}
	for _, m := range s.base.Matrices {
		for _, constraint := range m.Constraints {
			if name, ok := constraint.ResourceName(); ok && name != corev1.ResourcePods {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func (s *search) trimOne(role workload.Role, c corev1.Container, name corev1.ResourceName) {
	have, ok := c.Resources.Requests[name]
	if !ok {
		if have, ok = c.Resources.Limits[name]; !ok {
			return
		}
	}
	step := unit(name)
	now := fit.Amount(name, have)
	least := int64(1)
	if c.Name != role.Main {
		least = 0 // a sidecar may do without
	}
	fix := func(n int64) ladder.Fix { return s.trimmed(role, c, name, n*step) }
	n, ok := fit.Largest(least, (now-1)/step, func(n int64) bool {
		_, starts := s.try(fix(n).Apply)
		return starts
	})
	if ok {
		s.offer(fix(n))
	}
}

func (s *search) trimmed(role workload.Role, c corev1.Container, name corev1.ResourceName, amount int64) ladder.Fix {
	q := fit.Quantity(name, amount)
	key := ladder.TrimKey(role, c.Name, name)
	var value any = q.String()
	if strings.HasSuffix(key, ".gpu") {
		value = amount
	}
	i := slices.IndexFunc(role.Template.Spec.Containers, func(other corev1.Container) bool { return other.Name == c.Name })
	var steps []command.Patch
	for field, list := range map[string]corev1.ResourceList{"requests": c.Resources.Requests, "limits": c.Resources.Limits} {
		if _, ok := list[name]; ok {
			steps = append(steps, command.Patch{Op: "replace", Path: fmt.Sprintf("/template/spec/containers/%d/resources/%s/%s", i, field, command.Escape(string(name))), Value: q.String()})
		}
	}
	slices.SortFunc(steps, func(a, b command.Patch) int { return strings.Compare(a.Path, b.Path) })
	who := phrase.Member(role.Name)
	if c.Name != role.Main {
		who = "container " + c.Name + " of each " + who
	} else {
		who = "each " + who
	}
	return s.resubmit(answer.Action{
		Kind: answer.Trim, By: answer.User, Change: map[string]any{key: value},
		Text: fmt.Sprintf("%s for %s", phrase.Amount(name, amount), who), Command: s.patch(role.Name, steps...),
	}, func(spec *whatif.Spec) { ladder.Lower(spec.Role(role.Name), c.Name, name, q) })
}
