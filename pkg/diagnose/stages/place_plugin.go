package stages

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// brands are the makers of devices that a plugin's name or image may tell.
var brands = []string{"nvidia", "amd", "intel", "habana", "ascend", "huawei", "aws", "neuron", "google", "tpu", "rdma", "sriov", "qualcomm", "cambricon", "iluvatar", "metax"}

// pluginOf is the DaemonSet of the device plugin for a resource: one that says device plugin in its name or image, and
// names the vendor there too, or nobody.
func (c *climb) pluginOf(name corev1.ResourceName) *appsv1.DaemonSet {
	brand, _, _ := strings.Cut(vendor(name), ".")
	var unbranded *appsv1.DaemonSet
	for _, d := range c.w.Snap.DaemonSets {
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

// selected are the pods of a namespace that a selector matches.
func (c *climb) selected(namespace string, selector *metav1.LabelSelector) []*corev1.Pod {
	sel, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil // the API server would not have accepted it
	}
	return slices.DeleteFunc(slices.Clone(c.w.Snap.Pods), func(p *corev1.Pod) bool { return p.Namespace != namespace || !sel.Matches(labels.Set(p.Labels)) })
}

// podTrouble says what the pods that a selector matches suffer from: one line for each reason.
func (c *climb) podTrouble(namespace string, selector *metav1.LabelSelector) []string {
	reasons := map[string]int{}
	for _, pod := range c.selected(namespace, selector) {
		for _, s := range pod.Status.ContainerStatuses {
			if s.State.Waiting != nil {
				reasons[s.State.Waiting.Reason]++
			}
		}
	}
	var lines []string
	for _, reason := range sortedKeys(reasons) {
		lines = append(lines, fmt.Sprintf("%s of it: %s", phrase.Count(reasons[reason], "pod"), reason))
	}
	return lines
}

// looksLike reports whether a node's labels say that it has the hardware behind a resource, which it does not advertise.
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

// devicePlugin: the hardware is there, says a label or the plugin that runs on the nodes, but nobody advertises it.
func (c *climb) devicePlugin(role placement.Role, name corev1.ResourceName) *Finding {
	if c.nearestResource(name) != "" {
		return nil // a name so close to one that is offered is a slip
	}
	var nodes []string
	for _, n := range c.w.Cluster().Nodes() {
		if looksLike(n, name) {
			nodes = append(nodes, n.Name)
		}
	}
	plugin := c.pluginOf(name)
	if len(nodes) == 0 && !unready(plugin) {
		return nil
	}
	return c.noPlugin(phrase.Role(role.Name), name, nodes, plugin)
}

// unplugged: some nodes do not advertise devices that their labels count, and with them the gang would fit. It is nil if
// that is not so.
func (c *climb) unplugged() *Finding {
	role := c.Party.Hardest(c.Place.Placed)
	name := request.Device(placement.Request(role.Pod))
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
	if name == "" || !c.fitOn(c.best().MapNodes(plugged), nil).Fits() || len(nodes) == 0 {
		return nil
	}
	return c.noPlugin(phrase.Role(role.Name), name, nodes, c.pluginOf(name)).detail("with them it would fit an empty cluster")
}

func (c *climb) noPlugin(role string, name corev1.ResourceName, nodes []string, plugin *appsv1.DaemonSet) *Finding {
	f := found(answer.StagePlacement, answer.NoDevicePlugin, answer.Blocked, answer.Admin, "%s (%s) %s %s and %s none: the device plugin does not work",
		phrase.Count(len(nodes), "node"), phrase.Names(nodes), phrase.Verb(len(nodes), "looks like it has", "look like they have"), phrase.Resource(name), phrase.Verb(len(nodes), "advertises", "advertise")).
		fact("resource", string(name)).fact("nodes", nodes).fact("role", role)
	if len(nodes) == 0 {
		f.Message = fmt.Sprintf("no node advertises %s: the device plugin does not work", name)
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
