// Package device finds what keeps members from the devices that they request, as extended resources or by resource claims: none are offered, published or free, or they are
// given to no pod.
package device

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/node"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Resources checks that every resource that is requested is offered by some node. One that nodes have and do not offer is sick, or
// its plugin is. Of those that are not it finds the first ones: users may request any number.
func Resources(c *stage.Context, out *stage.Result, role placement.Role) {
	request := podrequest.Of(role.Pod)
	if len(c.Cluster().Nodes()) == 0 {
		return
	}
	absent := 0
	for _, name := range slices.Sorted(maps.Keys(request)) {
		q := request[name]
		if q.IsZero() || !strings.Contains(string(name), "/") || Uncounted(c, name) || offers(c)[name] > 0 {
			continue
		}
		if slices.ContainsFunc(c.Cluster().Nodes(), func(n *corev1.Node) bool { return remembers(n, name) }) && !unready(component.DevicePlugin(c.View, name)) {
			continue
		}
		if absent++; absent > stage.MostAbsent {
			out.Note("%s requests more resources that no node offers", phrase.Role(role.Name))
			return
		}
		if f := devicePlugin(c, role, name); f != nil {
			out.Add(f)
			continue
		}
		out.Add(notOffered(c, role, name))
	}
}

// remembers reports whether a node knows that it has a device.
func remembers(n *corev1.Node, name corev1.ResourceName) bool {
	q := n.Status.Capacity[name]
	return !q.IsZero()
}

// offersOf reports whether a node has any device of the same vendor to give: devices may be cut into smaller ones.
func offersOf(n *corev1.Node, name corev1.ResourceName) bool {
	for other := range n.Status.Allocatable {
		if vendor(other) == vendor(name) && node.Offers(n, other) {
			return true
		}
	}
	return false
}

// vendor is the part of a resource name before the slash; devices of one vendor carry labels of the same prefix.
func vendor(name corev1.ResourceName) string {
	v, _, _ := strings.Cut(string(name), "/")
	return v
}

// meant are the offered resources that may have been meant by a name: of the same vendor, and not requested already. The memory that a slice has depends on the GPU, its
// size is what was chosen.
func meant(c *stage.Context, role placement.Role, name corev1.ResourceName) []string {
	size := podrequest.MIGSize(name)
	return slices.DeleteFunc(slices.Clone(devices(c)), func(text string) bool {
		other := corev1.ResourceName(text)
		return vendor(other) != vendor(name) || podrequest.OfResource(role.Pod, other) > 0 || size != "" && size != podrequest.MIGSize(other)
	})
}

// nearestResource is the offered resource of which a name is a slip; "" if there is none.
func nearestResource(c *stage.Context, role placement.Role, name corev1.ResourceName) string {
	have := meant(c, role, name)
	if n := suggest.Nearest(string(name), have); n != "" {
		return n
	}
	return ""
}

// devices are the extended resources that nodes offer, sorted.
func devices(c *stage.Context) []string {
	type devices struct{}
	return view.Once(c.View, devices{}, func() (names []string) {
		for _, name := range slices.Sorted(maps.Keys(offers(c))) {
			names = append(names, string(name))
		}
		return names
	})
}

// offers is how many nodes offer each extended resource that any does.
func offers(c *stage.Context) map[corev1.ResourceName]int {
	type offers struct{}
	return view.Once(c.View, offers{}, func() map[corev1.ResourceName]int {
		nodes := map[corev1.ResourceName]int{}
		for _, n := range c.Cluster().Nodes() {
			for name, q := range n.Status.Allocatable {
				if strings.Contains(string(name), "/") && !q.IsZero() {
					nodes[name]++
				}
			}
		}
		return nodes
	})
}

func notOffered(c *stage.Context, role placement.Role, name corev1.ResourceName) *stage.Finding {
	have := devices(c)
	same := func(r placement.Role) bool { return podrequest.OfResource(r.Pod, name) > 0 }
	f := stage.Found(answer.ResourceNotOffered, "no node offers %s%s; there are: %s", name, c.OnlyFor(role, "requested by", same), phrase.Names(countOffers(c, have))).
		Fact("resource", string(name)).Fact("have", have).Fact("role", phrase.Role(role.Name))
	slicing(c, f, name)
	if of := c.Gang.RoleByName(phrase.Role(role.Name)); of != nil && len(of.Template.Spec.Containers) > 0 && podrequest.Amount(name, podrequest.OfTemplate(of.Template.Spec)[name]) == 0 {
		f.Detail("the job does not request it: its operator, or a webhook, adds it to the pods")
	}
	nearest := slicedAsWhole(c, f, name)
	if nearest == "" {
		nearest = nearestResource(c, role, name)
	}
	if nearest == "" {
		only := meant(c, role, name)
		if len(only) != 1 {
			return f
		}
		nearest = only[0]
	}
	to := corev1.ResourceName(nearest)
	return f.Detail("did you mean %s?", nearest).
		Fix(patch.Job(c.Gang, answer.Fix, fmt.Sprintf("request %s instead of %s", nearest, name), map[string]any{"resource": nearest, "role": phrase.Role(role.Name)}, func(spec *whatif.Spec) {
			for i := range spec.Roles {
				template := &spec.Roles[i].Template.Spec
				for _, list := range [][]corev1.Container{template.InitContainers, template.Containers} {
					for j := range list {
						renameKey(list[j].Resources.Limits, name, to)
						renameKey(list[j].Resources.Requests, name, to)
					}
				}
			}
		}))
}

// slicedAsWhole adds to a finding that no node offers a kind of slices that nodes offer it under the name of whole GPUs, and returns that name where all who offer it do so; "" where none does, or others have whole ones.
func slicedAsWhole(c *stage.Context, f *stage.Finding, name corev1.ResourceName) string {
	const whole = "nvidia.com/gpu"
	var sliced []string
	others := false
	for _, n := range c.Cluster().Nodes() {
		switch {
		case !node.Offers(n, whole):
		case podrequest.SlicedAsWhole(n, name):
			sliced = append(sliced, n.Name)
		default:
			others = true
		}
	}
	if len(sliced) == 0 {
		return ""
	}
	f.Detail("the slices of %s are such, and they go by the name %s there (nvidia.com/mig.strategy=single)", phrase.Names(sliced), whole)
	if others {
		f.Detail("other nodes have whole GPUs of that name: who requests it has to select the nodes by their label nvidia.com/gpu.product")
		return ""
	}
	return whole
}

func renameKey(list corev1.ResourceList, from, to corev1.ResourceName) {
	if q, ok := list[from]; ok {
		delete(list, from)
		list[to] = q
	}
}

// countOffers reads like: nvidia.com/gpu (4 nodes).
func countOffers(c *stage.Context, names []string) []string {
	var out []string
	for _, name := range names {
		out = append(out, fmt.Sprintf("%s (%s)", name, phrase.Count(offers(c)[corev1.ResourceName(name)], "node")))
	}
	return out
}
