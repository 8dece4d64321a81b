package stages

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/placement"
)

// cannotExist looks for what no amount of waiting brings: a resource, a label or a volume that is not there. It reports
// whether it found any.
func (c *climb) cannotExist() bool {
	before := len(c.findings)
	for _, role := range c.Party.Roles {
		c.resources(role)
		c.selector(role)
		c.topology(role)
		c.volumes(role)
		c.deviceClaims(role)
	}
	return len(c.findings) > before
}

// resources: every resource that is asked for must be offered by some node. One that nodes have and do not offer is sick, or
// its plugin is.
func (c *climb) resources(role placement.Role) {
	request := placement.Request(role.Pod)
	if len(c.w.Cluster().Nodes()) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(request)) {
		q := request[name]
		if q.IsZero() || !strings.Contains(string(name), "/") || c.some(func(n *corev1.Node) bool { return offers(n, name) }) {
			continue
		}
		if c.some(func(n *corev1.Node) bool { return remembers(n, name) }) && !unready(c.pluginOf(name)) {
			continue
		}
		if f := c.devicePlugin(role, name); f != nil {
			c.add(*f)
			continue
		}
		c.add(*c.notOffered(role, name))
	}
}

func (c *climb) some(match func(*corev1.Node) bool) bool {
	return slices.ContainsFunc(c.w.Cluster().Nodes(), match)
}

// offers reports whether a node has a device to give.
func offers(n *corev1.Node, name corev1.ResourceName) bool {
	q := n.Status.Allocatable[name]
	return !q.IsZero()
}

// remembers reports whether a node knows that it has a device.
func remembers(n *corev1.Node, name corev1.ResourceName) bool {
	q := n.Status.Capacity[name]
	return !q.IsZero()
}

// offersOf reports whether a node has any device of the same vendor to give: devices may be cut into smaller ones.
func offersOf(n *corev1.Node, name corev1.ResourceName) bool {
	for other := range n.Status.Allocatable {
		if vendor(other) == vendor(name) && offers(n, other) {
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

// nearestResource is the offered resource of which a name is a slip; "" if there is none.
func (c *climb) nearestResource(name corev1.ResourceName) string {
	have := c.devices()
	if n := suggest.Nearest(string(name), have); n != "" && vendor(corev1.ResourceName(n)) == vendor(name) {
		return n
	}
	return ""
}

// devices are the extended resources that nodes offer.
func (c *climb) devices() []string {
	names := map[string]bool{}
	for _, n := range c.w.Cluster().Nodes() {
		for name, q := range n.Status.Allocatable {
			if strings.Contains(string(name), "/") && !q.IsZero() {
				names[string(name)] = true
			}
		}
	}
	return sortedKeys(names)
}

func (c *climb) notOffered(role placement.Role, name corev1.ResourceName) *Finding {
	have := c.devices()
	f := found(answer.StagePlacement, answer.ResourceNotOffered, answer.Blocked, answer.User, "no node offers %s; there are: %s", name, phrase.Names(c.countOffers(have))).
		fact("resource", string(name)).fact("have", have).fact("role", phrase.Role(role.Name))
	nearest := c.nearestResource(name)
	if nearest == "" {
		gpus := slices.DeleteFunc(slices.Clone(have), func(n string) bool { return vendor(corev1.ResourceName(n)) != vendor(name) })
		if len(gpus) != 1 {
			return f
		}
		nearest = gpus[0]
	}
	to := corev1.ResourceName(nearest)
	return f.detail("did you mean %s?", nearest).
		fix(c.edited(answer.Fix, fmt.Sprintf("ask for %s instead of %s", nearest, name), map[string]any{"resource": nearest, "role": phrase.Role(role.Name)}, func(spec *whatif.Spec) {
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

func renameKey(list corev1.ResourceList, from, to corev1.ResourceName) {
	if q, ok := list[from]; ok {
		delete(list, from)
		list[to] = q
	}
}

// countOffers reads like: nvidia.com/gpu (4 nodes).
func (c *climb) countOffers(names []string) []string {
	var out []string
	for _, name := range names {
		n := 0
		for _, node := range c.w.Cluster().Nodes() {
			if q := node.Status.Allocatable[corev1.ResourceName(name)]; !q.IsZero() {
				n++
			}
		}
		out = append(out, fmt.Sprintf("%s (%s)", name, phrase.Count(n, "node")))
	}
	return out
}
