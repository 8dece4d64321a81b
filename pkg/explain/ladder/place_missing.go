package ladder

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/command"
	"github.com/gangctl/gangctl/pkg/explain/near"
	"github.com/gangctl/gangctl/pkg/explain/phrase"
	"github.com/gangctl/gangctl/pkg/explain/whatif"
	"github.com/gangctl/gangctl/pkg/fit"
	"github.com/gangctl/gangctl/pkg/snapshot"
)

// cannotExist looks for what no amount of waiting brings: a resource, a label or a volume that is not there. It reports
// whether it found any.
func (c *climb) cannotExist() bool {
	before := len(c.findings)
	for _, role := range c.Party.Roles {
		c.resources(role)
		c.selector(role)
		c.volumes(role)
	}
	return len(c.findings) > before
}

// roleName is the role of the job that a simulated role stands for.
func roleName(simulated string) string {
	name, _, _ := strings.Cut(simulated, "#")
	return name
}

// resources: every resource that is asked for must be offered by some node.
func (c *climb) resources(role fit.Role) {
	request := fit.Request(role.Pod)
	if len(c.w.Cluster().Nodes()) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(request)) {
		q := request[name]
		if q.IsZero() || !strings.Contains(string(name), "/") || c.offered(name) {
			continue
		}
		if f := c.devicePlugin(role, name); f != nil {
			c.add(*f)
			continue
		}
		c.add(*c.notOffered(role, name))
	}
}

func (c *climb) offered(name corev1.ResourceName) bool {
	return slices.ContainsFunc(c.w.Cluster().Nodes(), func(n *corev1.Node) bool {
		allocatable, capacity := n.Status.Allocatable[name], n.Status.Capacity[name]
		return !allocatable.IsZero() || !capacity.IsZero()
	})
}

// vendor is the part of a resource name before the slash; devices of one vendor carry labels of the same prefix.
func vendor(name corev1.ResourceName) string {
	v, _, _ := strings.Cut(string(name), "/")
	return v
}

// devicePlugin: the hardware is there, says a label or the plugin that runs on the nodes, but nobody advertises it.
func (c *climb) devicePlugin(role fit.Role, name corev1.ResourceName) *Finding {
	if c.nearestResource(name) != "" {
		return nil // a name so close to one that is offered is a slip
	}
	short := strings.TrimSuffix(string(name)[strings.IndexByte(string(name), '/')+1:], "s")
	var nodes []string
	for _, n := range c.w.Cluster().Nodes() {
		for label, value := range n.Labels {
			if strings.HasPrefix(label, string(name)) && value != "false" && value != "0" || strings.HasPrefix(label, vendor(name)+"/"+short) && value == "true" {
				nodes = append(nodes, n.Name)
				break
			}
		}
	}
	plugin := c.pluginOf(name)
	if len(nodes) == 0 && plugin == nil {
		return nil
	}
	f := found(answer.StagePlacement, answer.NoDevicePlugin, answer.Blocked, answer.Admin, "%s look like they have %s and advertise none: the device plugin does not work",
		phrase.Count(len(nodes), "node"), phrase.Resource(name)).
		fact("resource", string(name)).fact("nodes", nodes).fact("role", roleName(role.Name))
	if len(nodes) == 0 {
		f.Message = fmt.Sprintf("no node advertises %s: the device plugin does not work", name)
	} else {
		f.detail("nodes: %s", phrase.Names(nodes))
	}
	if plugin == nil {
		return f.detail("no DaemonSet of a device plugin for %s was found", name)
	}
	f.see("apps/v1", "DaemonSet", plugin, ".status.numberReady").
		detail("device plugin %s/%s: %d/%d ready", plugin.Namespace, plugin.Name, plugin.Status.NumberReady, plugin.Status.DesiredNumberScheduled).
		run(command.Kubectl(plugin.Namespace, "logs", "daemonset/"+plugin.Name, "--previous", "--tail=50"))
	for _, line := range c.podTrouble(plugin.Namespace, plugin.Spec.Selector) {
		f.detail("%s", line)
	}
	return f
}

// nearestResource is the offered resource of which a name is a slip; "" if there is none.
func (c *climb) nearestResource(name corev1.ResourceName) string {
	have := c.devices()
	if n := near.Nearest(string(name), have); n != "" && vendor(corev1.ResourceName(n)) == vendor(name) {
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

func (c *climb) notOffered(role fit.Role, name corev1.ResourceName) *Finding {
	have := c.devices()
	f := found(answer.StagePlacement, answer.ResourceNotOffered, answer.Blocked, answer.User, "no node offers %s; there are: %s", name, phrase.Names(c.countOffers(have))).
		fact("resource", string(name)).fact("have", have).fact("role", roleName(role.Name))
	nearest := c.nearestResource(name)
	if nearest == "" {
		gpus := slices.DeleteFunc(slices.Clone(have), func(n string) bool { return vendor(corev1.ResourceName(n)) != vendor(name) })
		if len(gpus) != 1 {
			return f
		}
		nearest = gpus[0]
	}
	to := corev1.ResourceName(nearest)
	r := c.g.RoleByName(roleName(role.Name))
	var steps []command.Patch
	for i, container := range r.Template.Spec.Containers {
		for field, list := range map[string]corev1.ResourceList{"limits": container.Resources.Limits, "requests": container.Resources.Requests} {
			if q, ok := list[name]; ok {
				path := fmt.Sprintf("/template/spec/containers/%d/resources/%s/", i, field)
				steps = append(steps, command.Patch{Op: "remove", Path: path + command.Escape(string(name))},
					command.Patch{Op: "add", Path: path + command.Escape(nearest), Value: q.String()})
			}
		}
	}
	slices.SortStableFunc(steps, func(a, b command.Patch) int {
		return strings.Compare(a.Path[:strings.LastIndexByte(a.Path, '/')], b.Path[:strings.LastIndexByte(b.Path, '/')])
	})
	return f.detail("did you mean %s?", nearest).fix(Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: fmt.Sprintf("ask for %s instead of %s", nearest, name), Change: map[string]any{"resource": nearest, "role": r.Name},
			Command: c.patchRole(r.Name, steps...)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Resubmit(s, c.g, func(spec *whatif.Spec) {
				for i := range spec.Roles {
					for j := range spec.Roles[i].Template.Spec.Containers {
						res := &spec.Roles[i].Template.Spec.Containers[j].Resources
						renameKey(res.Limits, name, to)
						renameKey(res.Requests, name, to)
					}
				}
			})
		},
	})
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
