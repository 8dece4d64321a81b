package placement

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// brands are the makers of devices that a plugin's name or image may name.
var brands = []string{"nvidia", "amd", "intel", "habana", "ascend", "huawei", "aws", "neuron", "google", "tpu", "rdma", "sriov", "qualcomm", "cambricon", "iluvatar", "metax"}

// pluginOf is the DaemonSet of the device plugin for a resource: one with device-plugin in its name or image, and
// the vendor there too, or no vendor.
func pluginOf(c *stage.Context, name corev1.ResourceName) *appsv1.DaemonSet {
	brand, _, _ := strings.Cut(vendor(name), ".")
	var unbranded *appsv1.DaemonSet
	for _, d := range c.View.Snap.DaemonSets {
		text := d.Name
		for _, container := range d.Spec.Template.Spec.Containers {
			text += " " + container.Image
		}
		switch {
		case !strings.Contains(text, "device-plugin"):
		case strings.Contains(text, brand):
			return d
		case !slices.ContainsFunc(brands, func(other string) bool { return strings.Contains(text, other) }):
			unbranded = d
		}
	}
	return unbranded
}

// unready reports whether a plugin does not run everywhere where it should.
func unready(d *appsv1.DaemonSet) bool {
	return d != nil && d.Status.NumberReady < d.Status.DesiredNumberScheduled
}

// looksLike reports whether a node has, by its labels, the hardware behind a resource, which it does not advertise.
func looksLike(n *corev1.Node, name corev1.ResourceName) bool {
	if offersOf(n, name) {
		return false
	}
	short := strings.TrimSuffix(string(name)[strings.IndexByte(string(name), '/')+1:], "s")
	for label, value := range n.Labels {
		if strings.HasPrefix(label, string(name)) && value != "false" && value != "0" || strings.HasPrefix(label, vendor(name)+"/"+short) && value == "true" {
			return true
		}
	}
	return remembers(n, name)
}

// devicePlugin finds hardware that is there, by a label or by the plugin that runs on the nodes, and that no node advertises.
func devicePlugin(c *stage.Context, role placement.Role, name corev1.ResourceName) *stage.Finding {
	if nearestResource(c, name) != "" {
		return nil // a name so close to one that is offered is a slip
	}
	var nodes []string
	for _, n := range c.Cluster().Nodes() {
		if looksLike(n, name) {
			nodes = append(nodes, n.Name)
		}
	}
	plugin := pluginOf(c, name)
	if len(nodes) == 0 && !unready(plugin) {
		return nil
	}
	return noPlugin(c, phrase.Role(role.Name), name, nodes, plugin)
}

// unplugged finds that some nodes do not advertise devices that their labels count, and with them the gang would fit. It is nil if
// that is not so.
func unplugged(c *stage.Context) *stage.Finding {
	role := c.Request.Hardest(c.Placement.Placed)
	name := request.Device(request.Of(role.Pod))
	var nodes []string
	plugged := func(n *corev1.Node) *corev1.Node {
		count, err := resource.ParseQuantity(n.Labels[string(name)+".count"])
		if err != nil || count.IsZero() || offersOf(n, name) {
			return n
		}
		nodes = append(nodes, n.Name)
		n = n.DeepCopy()
		n.Status.Allocatable[name] = count
		return n
	}
	if name == "" || !c.Fit(c.Best().MapNodes(plugged), nil).Fits() || len(nodes) == 0 {
		return nil
	}
	return noPlugin(c, phrase.Role(role.Name), name, nodes, pluginOf(c, name)).Detail("with them it would fit an empty cluster")
}

func noPlugin(c *stage.Context, role string, name corev1.ResourceName, nodes []string, plugin *appsv1.DaemonSet) *stage.Finding {
	f := stage.Found(answer.NoDevicePlugin, "%s (%s) %s %s and %s none: the device plugin does not work",
		phrase.Count(len(nodes), "node"), phrase.Names(nodes), phrase.Verb(len(nodes), "looks like it has", "look like they have"), phrase.Resource(name), phrase.Verb(len(nodes), "advertises", "advertise")).
		Fact("resource", string(name)).Fact("nodes", nodes).Fact("role", role)
	if len(nodes) == 0 {
		f.Message = fmt.Sprintf("no node advertises %s: the device plugin does not work", name)
	}
	if plugin == nil {
		return f.Detail("no DaemonSet of a device plugin for %s was found", name)
	}
	f.See("apps/v1", "DaemonSet", plugin, ".status.numberReady").
		Detail("device plugin %s: %d/%d ready", c.NameOf("DaemonSet", plugin), plugin.Status.NumberReady, plugin.Status.DesiredNumberScheduled).
		Run(command.Kubectl(plugin.Namespace, "logs", "daemonset/"+plugin.Name, "--previous", "--tail=50"))
	for _, line := range component.WaitingReasons(c.View, plugin.Namespace, plugin.Spec.Selector) {
		f.Detail("%s", line)
	}
	return f
}
