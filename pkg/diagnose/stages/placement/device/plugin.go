package device

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/node"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

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

// shows reports whether a node has the hardware behind a resource, by its labels, by its NodeClaim, or as nodes of its kind have it.
func shows(c *stage.Context, n *corev1.Node, name corev1.ResourceName) bool {
	if promised := c.View.Promised(n)[name]; !promised.IsZero() || request.Labelled(n, name) || remembers(n, name) {
		return true
	}
	if deviceModelsOf(c.View).lacks(n, name) {
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
			nodes, starting = append(nodes, n.Name), starting && node.IsNew(c, n)
		}
	}
	plugin := component.DevicePlugin(c.View, name)
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

// Unplugged finds that some nodes do not advertise devices that they should, by their labels or their NodeClaims, and with them the gang would fit. It is nil if
// that is not so.
func Unplugged(c *stage.Context) *stage.Finding {
	role := c.Request.Hardest(c.Placement.Placed)
	name := lacked(c, role)
	if name == "" {
		return nil
	}
	var nodes []string
	plugged := func(n *corev1.Node) *corev1.Node {
		if !looksLike(c, n, name) {
			return n
		}
		up := Equipped(c, n)
		if node.Offers(up, name) {
			nodes = append(nodes, n.Name)
		}
		return up
	}
	if !c.Fit(c.Best().MapNodes(plugged), nil).Fits() || len(nodes) == 0 {
		return nil
	}
	return noPlugin(c, phrase.Role(role.Name), name, nodes, component.DevicePlugin(c.View, name)).Detail("with them it would fit an empty cluster")
}

// lacked is the device that a member of a role requests, its accelerator before others, and that some node looks like it has and does not advertise; "" if there is none.
func lacked(c *stage.Context, role placement.Role) corev1.ResourceName {
	requested := request.Of(role.Pod)
	names := []corev1.ResourceName{request.Device(requested)}
	for _, name := range slices.Sorted(maps.Keys(requested)) {
		if request.IsDevice(name) && name != names[0] && len(names) < stage.MaxLines {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if name != "" && anyLooksLike(c, name) {
			return name
		}
	}
	return ""
}

// anyLooksLike reports whether some node has the hardware behind a resource and does not advertise it.
func anyLooksLike(c *stage.Context, name corev1.ResourceName) bool {
	type anyLooksLike struct{ name corev1.ResourceName }
	return view.Once(c.View, anyLooksLike{name}, func() bool {
		return slices.ContainsFunc(c.Cluster().Nodes(), func(n *corev1.Node) bool { return looksLike(c, n, name) })
	})
}

func noPlugin(c *stage.Context, role string, name corev1.ResourceName, nodes []string, plugin *appsv1.DaemonSet) *stage.Finding {
	f := stage.Found(answer.NoDevicePlugin, "%s (%s) %s %s and %s none: the device plugin does not work",
		phrase.Count(len(nodes), "node"), phrase.Names(nodes), phrase.Verb(len(nodes), "looks like it has", "look like they have"), phrase.Resource(name), phrase.Verb(len(nodes), "advertises", "advertise")).
		Fact("resource", string(name)).Fact("nodes", nodes).Fact("role", role)
	if len(nodes) == 0 {
		f.Message = fmt.Sprintf("no node advertises %s: the device plugin does not work", name)
	}
	return daemon(c, f, "device plugin", string(name), plugin, nodes)
}

// daemon adds what is known of the DaemonSet, which may be nil, of what brings some devices on some nodes: which of its pods does not work there.
func daemon(c *stage.Context, f *stage.Finding, what, of string, plugin *appsv1.DaemonSet, nodes []string) *stage.Finding {
	if plugin == nil {
		return f.Detail("no DaemonSet of a %s for %s was found", what, of)
	}
	if plugin.Status.DesiredNumberScheduled == 0 {
		f.Detail("%s wants pods on 0 nodes: see its node selector, its node affinity and its tolerations", c.TitleOf("DaemonSet", plugin))
	}
	f.See("apps/v1", "DaemonSet", plugin, ".status.numberReady").
		Detail("%s %s: %d/%d ready", what, c.NameOf("DaemonSet", plugin), plugin.Status.NumberReady, plugin.Status.DesiredNumberScheduled)
	on, pods := component.On(c.View, plugin, nodes...), component.PodsOf(c.View, plugin)
	if len(on.Broken) == 0 {
		on.Broken = component.Broken(pods)
	}
	stage.DetailEach(f, component.Troubles(c, on.Broken), func(line string) string { return line })
	if len(on.Absent) > 0 && len(pods) > 0 && plugin.Status.DesiredNumberScheduled > 0 {
		f.Detail("it has no pod on %s: see its node selector, its tolerations and their taints", phrase.Names(on.Absent))
	}
	if len(on.Broken) > 0 && c.Reader.Sees(plugin.Namespace) {
		return f.Run(component.Look(on.Broken[0]))
	}
	return f.Run(component.Log(c.View, "daemonset", plugin, plugin.Spec.Selector))
}
