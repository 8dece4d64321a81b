package placement

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/cluster/view"
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

// looksLike reports whether a node has the hardware behind a resource, which it does not advertise, nor does a DRA driver.
func looksLike(c *stage.Context, n *corev1.Node, name corev1.ResourceName) bool {
	return !offersOf(n, name) && shows(c, n, name) && !published(c, name).HasAny(n.Name, "")
}

// published are the nodes on which DRA drivers of the vendor of a resource offer devices: with an empty name for nodes that they do not name.
func published(c *stage.Context, name corev1.ResourceName) sets.Set[string] {
	v := request.VendorOf(name)
	if v == nil {
		return nil
	}
	type publishedBy struct{ vendor string }
	return view.Once(c.View, publishedBy{v.Name}, func() sets.Set[string] {
		on := sets.New[string]()
		for _, s := range c.View.Snap.ResourceSlices {
			if v.Drives(s.Spec.Driver) {
				on.Insert(ptr.Deref(s.Spec.NodeName, ""))
			}
		}
		return on
	})
}

// shows reports whether a node has the hardware behind a resource, by its labels or by its NodeClaim.
func shows(c *stage.Context, n *corev1.Node, name corev1.ResourceName) bool {
	if promised := c.View.Promised(n)[name]; !promised.IsZero() || request.Labelled(n, name) || remembers(n, name) {
		return true
	}
	short := strings.TrimSuffix(string(name)[strings.IndexByte(string(name), '/')+1:], "s")
	for label, value := range n.Labels {
		if strings.HasPrefix(label, string(name)) && value != "false" && value != "0" || strings.HasPrefix(label, vendor(name)+"/"+short) && value == "true" {
			return !request.IsGPU(name) || !request.Sliced(n)
		}
	}
	return false
}

// devicePlugin finds hardware that is there, by a label or by the plugin that runs on the nodes, and that no node advertises.
func devicePlugin(c *stage.Context, role placement.Role, name corev1.ResourceName) *stage.Finding {
	if nearestResource(c, role, name) != "" {
		return nil // a name so close to one that is offered is a slip
	}
	var nodes []string
	starting := true
	for _, n := range c.Cluster().Nodes() {
		if looksLike(c, n, name) {
			nodes, starting = append(nodes, n.Name), starting && isNew(c, n)
		}
	}
	plugin := pluginOf(c, name)
	switch {
	case len(nodes) == 0 && !unready(plugin):
		return nil
	case len(nodes) > 0 && starting:
		return stage.Found(answer.ScalingUp, "%s joining the cluster, and %s device plugin has not advertised %s yet", phrase.AreNames(nodes), phrase.Verb(len(nodes), "its", "their"), phrase.Resource(name)).
			Fact("resource", string(name)).Fact("nodes", nodes).Fact("role", phrase.Role(role.Name)).
			Detail("whether %s enough cannot be determined: how many %s will have is not known", phrase.Verb(len(nodes), "it is", "they are"), phrase.Verb(len(nodes), "it", "they"))
	}
	return noPlugin(c, phrase.Role(role.Name), name, nodes, plugin)
}

// unplugged finds that some nodes do not advertise devices that they should, by their labels or their NodeClaims, and with them the gang would fit. It is nil if
// that is not so.
func unplugged(c *stage.Context) *stage.Finding {
	role := c.Request.Hardest(c.Placement.Placed)
	name := request.Device(request.Of(role.Pod))
	var nodes []string
	plugged := func(n *corev1.Node) *corev1.Node {
		if name == "" || !looksLike(c, n, name) {
			return n
		}
		up := equipped(c, n)
		if offers(up, name) {
			nodes = append(nodes, n.Name)
		}
		return up
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
