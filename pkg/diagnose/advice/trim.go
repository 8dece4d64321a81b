package advice

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/pkg/placement/quota"
)

// trimmer searches for smaller requests of the members.
type trimmer struct{ *search }

// trim offers the largest request, of each resource, with which the gang starts now: of one role, or, where that is not enough, of all that
// request the same.
func (s trimmer) trim() {
	all := len(s.actions)
	s.trimClaims()
	for _, name := range s.short() {
		before := len(s.actions)
		for _, role := range s.g.Roles {
			roles := s.oneTemplate(role)
			if len(roles) == 0 {
				continue
			}
			for _, c := range slices.Concat(role.Template.Spec.Containers, role.Template.Spec.InitContainers) {
				s.trimOne(roles, c, name)
			}
			s.trimPod(role, name)
		}
		if len(s.actions) > before {
			continue
		}
		for _, alike := range s.alike(name) {
			s.trimOne(alike, alike[0].Template.Spec.Containers[alike[0].MainContainer()], name)
		}
	}
	if len(s.actions) == all {
		s.trimSeveral()
	}
}

// trimSeveral offers the largest requests of several resources of a role with which the gang starts now, where that of one is not enough: of each the largest for which there is
// room with as little as can be of those after it. Devices come first.
func (s trimmer) trimSeveral() {
	for _, role := range s.g.Roles {
		roles, i := s.oneTemplate(role), role.MainContainer()
		if len(roles) == 0 || i < 0 {
			continue
		}
		c := role.Template.Spec.Containers[i]
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.lacking())), func(name corev1.ResourceName) bool {
			have, ok := requested(c, name)
			return !ok || podrequest.Amount(name, have) <= unit(name)
		})
		device := podrequest.Device(request(role))
		slices.SortStableFunc(names, func(a, b corev1.ResourceName) int { return cmp.Compare(btoi(b == device), btoi(a == device)) })
		if len(names) > 1 {
			s.trimEach(roles, c, names)
		}
	}
}

// trimEach trims several resources of a container, one after the other. One that is not short then stays as it is.
func (s trimmer) trimEach(roles []gang.Role, c corev1.Container, names []corev1.ResourceName) {
	least := func(rest []corev1.ResourceName, e edit) edit {
		for _, name := range rest {
			e = trimmed(roles, c, name, unit(name)).after(e)
		}
		return e
	}
	all := edit{apply: func(*whatif.Spec) {}}
	for i, name := range names {
		rest := names[i+1:]
		if s.hasRoom(least(rest, all)) {
			continue
		}
		have, _ := requested(c, name)
		step := unit(name)
		to := func(n int64) edit {
			e := trimmed(roles, c, name, n*step)
			if all.Text != "" {
				e = e.after(all)
			}
			return e
		}
		n, ok := placement.Largest(1, (podrequest.Amount(name, have)-1)/step, func(n int64) bool { return s.hasRoom(least(rest, to(n))) })
		if !ok || s.spent() {
			return
		}
		all = to(n)
	}
	if all.Text != "" {
		s.offerEdit(all)
	}
}

// oneTemplate are a role and those whose pods its template makes, too; none for a role of which another has the template.
func (s *search) oneTemplate(role gang.Role) []gang.Role {
	if s.g.RoleByName(role.TemplateOf) != nil {
		return nil
	}
	all := []gang.Role{role}
	for _, other := range s.g.Roles {
		if other.TemplateOf == role.Name {
			all = append(all, other)
		}
	}
	return all
}

// alike are the roles, two or more, whose main containers have the same name and request the same of a resource.
func (s trimmer) alike(name corev1.ResourceName) [][]gang.Role {
	var all [][]gang.Role
	at := map[string]int{}
	for _, role := range s.g.Roles {
		i := role.MainContainer()
		if i < 0 {
			continue
		}
		c := role.Template.Spec.Containers[i]
		q, ok := requested(c, name)
		if !ok {
			continue
		}
		key := c.Name + " " + q.String()
		if _, known := at[key]; !known {
			at[key] = len(all)
			all = append(all, nil)
		}
		all[at[key]] = append(all[at[key]], role)
	}
	return slices.DeleteFunc(all, func(roles []gang.Role) bool { return len(roles) < 2 })
}

// requested is what a container requests of a resource, or else its limit.
func requested(c corev1.Container, name corev1.ResourceName) (resource.Quantity, bool) {
	q, ok := c.Resources.Requests[name]
	if !ok {
		q, ok = c.Resources.Limits[name]
	}
	return q, ok
}

// short are the resources that findings report as short, and the devices that roles request.
func (s trimmer) short() []corev1.ResourceName {
	names := s.lacking()
	for _, role := range s.g.Roles {
		if device := podrequest.Device(request(role)); device != "" {
			names[device] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// lacking are the resources that findings report as short, or of which some node has too little.
func (s trimmer) lacking() map[corev1.ResourceName]bool {
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
	return names
}

// unit is the step in which a resource is trimmed: whole cores, Gi, pages and devices.
func unit(name corev1.ResourceName) int64 {
	switch name {
	case corev1.ResourceCPU:
		return 1000
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return 1 << 30
	default:
		return podrequest.Unit(name)
	}
}

func (s trimmer) trimOne(roles []gang.Role, c corev1.Container, name corev1.ResourceName) {
	have, ok := requested(c, name)
	if !ok {
		have, ok = s.byDefault(roles[0], c.Name, name)
	}
	if !ok {
		return
	}
	step, least := unit(name), int64(1)
	if c.Name != roles[0].Main {
		least = 0 // a sidecar may do without
	}
	s.offerLargest(least, (podrequest.Amount(name, have)-1)/step, func(n int64) edit { return trimmed(roles, c, name, n*step) })
}

// byDefault is what admission adds to the requests of a container that its template leaves out: the default of a LimitRange.
func (s trimmer) byDefault(role gang.Role, container string, name corev1.ResourceName) (resource.Quantity, bool) {
	pod := s.w.Virtual(s.g, gang.Member{Role: role.Name})
	r := patch.Resources(&pod.Spec, container)
	if r == nil {
		return resource.Quantity{}, false
	}
	q, ok := r.Requests[name]
	return q, ok
}

// trimPod offers the largest request of a role whose pods request a resource as a whole. It is no less than what the containers request: the API
// server takes no less.
func (s trimmer) trimPod(role gang.Role, name corev1.ResourceName) {
	r := role.Template.Spec.Resources
	if r == nil {
		return
	}
	have, ok := r.Requests[name]
	if !ok {
		if have, ok = r.Limits[name]; !ok {
			return
		}
	}
	alone := role.Template.Spec.DeepCopy()
	alone.Resources = nil
	step, containers := unit(name), podrequest.Amount(name, podrequest.OfTemplate(*alone)[name])
	s.offerLargest(max(1, (containers+step-1)/step), (podrequest.Amount(name, have)-1)/step, func(n int64) edit {
		q := podrequest.Quantity(name, n*step)
		a := answer.Action{Kind: answer.Trim, By: answer.User, Change: map[string]any{role.Name + ".pod." + string(name): q.String()},
			Text: fmt.Sprintf("%s for the pod of each %s", phrase.Amount(name, n*step), phrase.Member(role.Name))}
		return edit{a, func(spec *whatif.Spec) { podrequest.Set(spec.Role(role.Name).Template.Spec.Resources, name, q) }}
	})
}

func trimmed(roles []gang.Role, c corev1.Container, name corev1.ResourceName, amount int64) edit {
	q := podrequest.Quantity(name, amount)
	a := answer.Action{Kind: answer.Trim, By: answer.User, Change: map[string]any{}}
	var members []string
	for _, role := range roles {
		key := patch.Key(role, c.Name, name)
		var value any = q.String()
		if strings.HasSuffix(key, ".gpu") {
			value = amount
		}
		a.Change[key] = value
		members = append(members, phrase.Member(role.Name))
		if c.Name == role.Main && name == podrequest.Device(request(role)) {
			a.Cost = answer.LessCompute
		}
	}
	who := "each " + strings.Join(members, " and ")
	if c.Name != roles[0].Main {
		who = "container " + c.Name + " of " + who
	}
	a.Text = fmt.Sprintf("%s for %s", phrase.Amount(name, amount), who)
	return edit{a, func(spec *whatif.Spec) {
		for _, role := range roles {
			patch.Lower(spec.Role(role.Name), c.Name, name, q)
		}
	}}
}
