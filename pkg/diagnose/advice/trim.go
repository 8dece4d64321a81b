package advice

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement/quota"
)

// trim offers the largest request, of each resource that is short, with which the gang starts now.
func (s *search) trim() {
	short := s.short()
	for _, role := range s.g.Roles {
		device := podrequest.Device(request(role))
		for _, c := range slices.Concat(role.Template.Spec.Containers, role.Template.Spec.InitContainers) {
			for _, name := range short {
				if name == device && c.Name == role.Main && !s.tooBig() {
					continue // fewer devices is less compute: reshape and fewer are the ways to that
				}
				s.trimOne(role, c, name)
			}
		}
	}
}

// tooBig reports whether the gang would have no place on a cluster that is empty.
func (s *search) tooBig() bool {
	return slices.ContainsFunc(s.base.Findings(), func(f stage.Finding) bool { return f.Code == answer.TooBig })
}

// short are the resources that findings report as short.
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

// rationed reports whether a quota or a queue is among the reasons.
func (s *search) rationed() bool {
	return slices.ContainsFunc(s.base.Findings(), func(f stage.Finding) bool {
		return f.Stage == answer.StageQueue || f.Stage == answer.StagePods || f.Code == answer.QueueOrder
	})
}

// unit is the step in which a resource is trimmed: whole cores, Gi and devices.
func unit(name corev1.ResourceName) int64 {
	switch name {
	case corev1.ResourceCPU:
		return 1000
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return 1 << 30
	default:
		return 1
	}
}

func (s *search) trimOne(role gang.Role, c corev1.Container, name corev1.ResourceName) {
	have, ok := c.Resources.Requests[name]
	if !ok {
		if have, ok = c.Resources.Limits[name]; !ok {
			return
		}
	}
	step, least := unit(name), int64(1)
	if c.Name != role.Main {
		least = 0 // a sidecar may do without
	}
	s.offerLargest(least, (podrequest.Amount(name, have)-1)/step, func(n int64) edit { return trimmed(role, c, name, n*step) })
}

func trimmed(role gang.Role, c corev1.Container, name corev1.ResourceName, amount int64) edit {
	q := podrequest.Quantity(name, amount)
	key := patch.Key(role, c.Name, name)
	var value any = q.String()
	if strings.HasSuffix(key, ".gpu") {
		value = amount
	}
	who := "each " + phrase.Member(role.Name)
	if c.Name != role.Main {
		who = "container " + c.Name + " of " + who
	}
	return edit{answer.Action{
		Kind: answer.Trim, By: answer.User, Change: map[string]any{key: value}, Text: fmt.Sprintf("%s for %s", phrase.Amount(name, amount), who),
	}, func(spec *whatif.Spec) { patch.Lower(spec.Role(role.Name), c.Name, name, q) }}
}
