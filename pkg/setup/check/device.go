package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

func devicePlugins(f *Facts) []Finding {
	var findings []Finding
	total, unhealthy := map[corev1.ResourceName]int64{}, map[corev1.ResourceName][]string{}
	nodesWith := map[corev1.ResourceName]int{}
	silent := map[string][]string{}
	for _, n := range f.View.Snap.Nodes {
		for name, capacity := range n.Status.Capacity {
			allocatable := n.Status.Allocatable[name]
			if !isDevice(name) || capacity.IsZero() {
				continue
			}
			nodesWith[name]++
			total[name] += allocatable.Value()
			if lost := capacity.Value() - allocatable.Value(); lost > 0 {
				unhealthy[name] = append(unhealthy[name], fmt.Sprintf("%s (%d)", n.Name, lost))
			}
		}
		for _, v := range request.Vendors() {
			if v.Labelled(n) && !offered(v, n) && !published(v, n, f.View.Snap.ResourceSlices) {
				silent[v.Name] = append(silent[v.Name], n.Name)
			}
		}
	}
	for _, v := range sortedKeys(silent) {
		findings = append(findings, f.silence(v, silent[v]))
	}
	for _, name := range sortedNames(unhealthy) {
		findings = append(findings, warnf("%s that are not healthy: %s", name, phrase.Names(unhealthy[name])).hint("see the device plugin's log on these nodes"))
	}
	for _, d := range component.DevicePlugins(f.View) {
		if d.Status.NumberReady < d.Status.DesiredNumberScheduled {
			findings = append(findings, warnf("DaemonSet %s/%s: %d/%d ready", d.Namespace, d.Name, d.Status.NumberReady, d.Status.DesiredNumberScheduled).
				hint("kubectl -n %s describe daemonset/%s", d.Namespace, d.Name))
		}
	}
	var offers []string
	for _, name := range sortedNames(total) {
		offers = append(offers, fmt.Sprintf("%d %s on %s", total[name], name, phrase.Count(nodesWith[name], "node")))
	}
	offers = append(offers, drivers(f.View.Snap.ResourceSlices)...)
	switch {
	case len(offers) > 0:
		findings = append(findings, okf("%s", strings.Join(offers, ", ")))
	case len(f.View.Snap.Nodes) == 0:
		findings = append(findings, warnf("the cluster has no nodes"))
	case len(findings) == 0:
		findings = append(findings, okf("no node offers GPUs or other devices, and none reports any"))
	}
	return findings
}

// silence is the finding for nodes with devices of a vendor that no device plugin offers, nor a DRA driver: if that cannot be seen, it
// may be the case.
func (f *Facts) silence(vendor string, nodes []string) Finding {
	what := fmt.Sprintf("%s with devices of %s offer none", phrase.Count(len(nodes), "node"), vendor)
	why, unlisted := f.Unlisted[ResourceSlices]
	if !unlisted {
		return failf("%s: %s", what, phrase.Names(nodes)).
			hint("see that the vendor's device plugin runs there: kubectl get pods -A -o wide --field-selector spec.nodeName=%s", nodes[0])
	}
	found := warnf("%s by a device plugin, and whether a DRA driver does could not be checked (list %s: %s): %s", what, ResourceSlices, why, phrase.Names(nodes))
	if f.Denied[ResourceSlices] {
		resource, group, _ := strings.Cut(ResourceSlices, ".")
		found.Hint, found.Fix = "an administrator can grant what is missing", grantAccess(f.User, []Access{{Verb: "list", Group: group, Resource: resource}})
	}
	return found
}

// drivers are the DRA drivers that offer devices, with how many nodes they name. How many devices these are is no number: they may overlap.
func drivers(all []*resourcev1.ResourceSlice) []string {
	on := map[string]map[string]bool{}
	for _, s := range all {
		if on[s.Spec.Driver] == nil {
			on[s.Spec.Driver] = map[string]bool{}
		}
		if s.Spec.NodeName != nil {
			on[s.Spec.Driver][*s.Spec.NodeName] = true
		}
	}
	var texts []string
	for _, driver := range sortedKeys(on) {
		text := "devices of the DRA driver " + driver
		if n := len(on[driver]); n > 0 {
			text += " on " + phrase.Count(n, "node")
		}
		texts = append(texts, text)
	}
	return texts
}

// isDevice reports whether a resource is one that device plugins offer.
func isDevice(name corev1.ResourceName) bool {
	return request.IsDevice(name) && !strings.Contains(string(name), "kubernetes.io/")
}

// offered reports whether a node has resources of a vendor.
func offered(v request.Vendor, n *corev1.Node) bool {
	for name := range n.Status.Capacity {
		if strings.HasPrefix(string(name), v.Prefix()) {
			return true
		}
	}
	return false
}

// published reports whether a DRA driver of a vendor offers devices on a node, or on nodes that it does not name one by one.
func published(v request.Vendor, n *corev1.Node, all []*resourcev1.ResourceSlice) bool {
	return slices.ContainsFunc(all, func(s *resourcev1.ResourceSlice) bool {
		return v.Drives(s.Spec.Driver) && (s.Spec.NodeName == nil || *s.Spec.NodeName == n.Name)
	})
}

func sortedNames[V any](m map[corev1.ResourceName]V) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(m))
}
