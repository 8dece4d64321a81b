package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// vendor is how the devices of a vendor show before a device plugin offers them: by a label of node feature discovery or of the
// vendor's own.
type vendor struct {
	name     string
	labels   []string
	resource string
}

var vendors = []vendor{
	{"NVIDIA", []string{"nvidia.com/gpu.present", "feature.node.kubernetes.io/pci-10de.present", "cloud.google.com/gke-accelerator"}, "nvidia.com/"},
	{"AMD", []string{"feature.node.kubernetes.io/pci-1002.present", "amd.com/gpu.device-id"}, "amd.com/"},
	{"Intel", []string{"intel.feature.node.kubernetes.io/gpu"}, "gpu.intel.com/"},
}

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
		for _, v := range vendors {
			if v.labelled(n) && !v.offered(n) {
				silent[v.name] = append(silent[v.name], n.Name)
			}
		}
	}
	for _, v := range sortedKeys(silent) {
		findings = append(findings, failf("%s with devices of %s offer none: %s", phrase.Count(len(silent[v]), "node"), v, phrase.Names(silent[v])).
			hint("see that the vendor's device plugin runs there: kubectl get pods -A -o wide --field-selector spec.nodeName=%s", silent[v][0]))
	}
	for _, name := range sortedNames(unhealthy) {
		findings = append(findings, warnf("%s that are not healthy: %s", name, phrase.Names(unhealthy[name])).hint("see the device plugin's log on these nodes"))
	}
	for _, d := range f.View.Snap.DaemonSets {
		if plugin(d) && d.Status.NumberReady < d.Status.DesiredNumberScheduled {
			findings = append(findings, warnf("DaemonSet %s/%s: %d/%d ready", d.Namespace, d.Name, d.Status.NumberReady, d.Status.DesiredNumberScheduled).
				hint("kubectl -n %s describe daemonset/%s", d.Namespace, d.Name))
		}
	}
	var offers []string
	for _, name := range sortedNames(total) {
		offers = append(offers, fmt.Sprintf("%d %s on %s", total[name], name, phrase.Count(nodesWith[name], "node")))
	}
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

// isDevice reports whether a resource is one that device plugins offer.
func isDevice(name corev1.ResourceName) bool {
	return request.IsDevice(name) && !strings.Contains(string(name), "kubernetes.io/")
}

func (v vendor) labelled(n *corev1.Node) bool {
	for _, label := range v.labels {
		if value, ok := n.Labels[label]; ok && value != "false" {
			return true
		}
	}
	return false
}

func (v vendor) offered(n *corev1.Node) bool {
	for name := range n.Status.Capacity {
		if strings.HasPrefix(string(name), v.resource) {
			return true
		}
	}
	return false
}

func plugin(d *appsv1.DaemonSet) bool { return strings.Contains(d.Name, "device-plugin") }

func sortedNames[V any](m map[corev1.ResourceName]V) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(m))
}
