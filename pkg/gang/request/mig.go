package request

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The labels by which NVIDIA's operator cuts the GPUs of a node into slices: into which, how far it is, and whether the slices are resources of their own.
const (
	migConfig   = "nvidia.com/mig.config"
	migState    = "nvidia.com/mig.config.state"
	migStrategy = "nvidia.com/mig.strategy"
	migPrefix   = "nvidia.com/mig-"
	migProduct  = "nvidia.com/gpu.product"
)

// isMIG reports whether a resource is slices of GPUs.
func isMIG(name corev1.ResourceName) bool { return strings.HasPrefix(string(name), migPrefix) }

// MIGSize is how much of the compute of a GPU a slice has, in sevenths: 3 of nvidia.com/mig-3g.40gb. It is empty for what is no slice.
func MIGSize(name corev1.ResourceName) string {
	compute, memory, ok := strings.Cut(strings.TrimPrefix(string(name), migPrefix), "g.")
	if !isMIG(name) || !ok || len(compute) != 1 || !strings.Contains(memory, "gb") {
		return ""
	}
	return compute
}

// Slicing is the layout that the GPUs of a node are to be cut into, and how far that is: success, failed, or what comes before. Both are empty of GPUs that
// stay whole.
func Slicing(n *corev1.Node) (layout, state string) {
	if layout = n.Labels[migConfig]; layout == "" || layout == "all-disabled" {
		return "", ""
	}
	return layout, n.Labels[migState]
}

// Sliced reports whether the GPUs of a node are cut, or to be cut, into slices that are resources of their own: it has no whole ones to offer.
func Sliced(n *corev1.Node) bool {
	layout, _ := Slicing(n)
	return layout != "" && n.Labels[migStrategy] == "mixed"
}

// SlicedInto reports whether a layout is one of slices of this kind alone.
func SlicedInto(layout string, name corev1.ResourceName) bool {
	return layout != "" && string(name) == migPrefix+strings.TrimPrefix(layout, "all-")
}

// SlicedAsWhole reports whether a node offers slices of this kind under the name of whole GPUs, as it does where all of its slices are alike and the strategy is single.
func SlicedAsWhole(n *corev1.Node, name corev1.ResourceName) bool {
	if !isMIG(name) || n.Labels[migStrategy] != "single" {
		return false
	}
	return SlicedInto(n.Labels[migConfig], name) || strings.HasSuffix(n.Labels[migProduct], "-MIG-"+strings.TrimPrefix(string(name), migPrefix))
}
