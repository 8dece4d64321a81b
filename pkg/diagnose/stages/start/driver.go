package start

import (
	"regexp"
	"slices"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
)

// unregistered is how a kubelet reports that no driver of a name has registered with it: one of volumes, or one of devices that are claimed.
var unregistered = regexp.MustCompile(`driver name (\S+) not found in the list of registered CSI drivers|DRA driver (\S+) is not registered`)

// driverOn adds to a finding that a kubelet does not know a driver what shows why: whether the driver has registered with the node, and how its DaemonSet is there.
func driverOn(c *stage.Context, f *stage.Finding, node string) {
	report := unregistered.FindStringSubmatch(f.Message)
	if report == nil {
		return
	}
	name, sort := report[1], component.CSI
	if name == "" {
		name, sort = report[2], component.DRA
	}
	if n := component.CSINode(c.View, node); n != nil && sort == component.CSI && !slices.ContainsFunc(n.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == name }) {
		f.See("storage.k8s.io/v1", "CSINode", n, ".spec.drivers").Detail("CSINode %s does not list %s", node, name)
	}
	d := component.Driver(c.View, name, sort)
	if d == nil {
		return
	}
	title, on := c.TitleOf("DaemonSet", d), component.On(c.View, d, node)
	switch {
	case len(on.Absent) > 0:
		f.Detail("%s, which looks like that driver, has no pod on %s: see its node selector, its tolerations and the taints of %s", title, node, node)
	case len(on.Broken) > 0:
		f.Detail("%s, which looks like that driver, has trouble on %s: %s", title, node, phrase.And(component.Troubles(c, on.Broken)))
		if c.Reader.Sees(d.Namespace) {
			f.Run(component.Look(on.Broken[0]))
			return
		}
	default:
		f.Detail("%s, which looks like that driver, has a pod on %s", title, node)
	}
	f.Run(command.Kubectl(d.Namespace, "describe", "daemonset", d.Name))
}
