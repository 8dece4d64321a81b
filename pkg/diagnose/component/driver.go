package component

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
)

// Nothing in the API links a driver or a device plugin to the DaemonSet that runs it: it is found by the names that the DaemonSet bears.

// brands are the makers of devices, and their products, that a plugin's name or image may name.
var brands = []string{"nvidia", "amd", "intel", "habana", "ascend", "huawei", "aws", "neuron", "google", "tpu", "rdma", "sriov", "qualcomm", "cambricon", "iluvatar", "metax"}

// registers is the folder of a node in which device plugins register with the kubelet.
const registers = "/kubelet/device-plugins"

// isCalledPlugin reports whether the names of a DaemonSet are those of a device plugin.
func isCalledPlugin(names string) bool {
	return strings.Contains(names, "device-plugin") || strings.Contains(names, "dev-plugin")
}

// DevicePlugins are the DaemonSets of device plugins: those that are called so, and after them those that mount the folder in which such register.
func DevicePlugins(v *view.View) []*appsv1.DaemonSet {
	type devicePlugins struct{}
	return view.Once(v, devicePlugins{}, func() []*appsv1.DaemonSet {
		var called, others []*appsv1.DaemonSet
		for _, d := range v.Snap.DaemonSets {
			switch names, all := namesIn(d.Name, &d.Spec.Template.Spec); {
			case isCalledPlugin(names):
				called = append(called, d)
			case strings.Contains(all, registers):
				others = append(others, d)
			}
		}
		return append(called, others...)
	})
}

// DevicePlugin is the DaemonSet of the device plugin for a resource: that which has a brand of the resource in its names, or else no brand, and is called a device plugin; nil if
// none is like it.
func DevicePlugin(v *view.View, resource corev1.ResourceName) *appsv1.DaemonSet {
	own, _, _ := strings.Cut(string(resource), ".")
	its := append(brandsIn(strings.ToLower(string(resource))), own)
	var unbranded *appsv1.DaemonSet
	for _, d := range DevicePlugins(v) {
		switch names, _ := namesIn(d.Name, &d.Spec.Template.Spec); {
		case slices.ContainsFunc(its, func(brand string) bool { return strings.Contains(names, brand) }):
			return d
		case len(brandsIn(names)) == 0 && isCalledPlugin(names):
			unbranded = d
		}
	}
	return unbranded
}

// brandsIn are the brands that a text has.
func brandsIn(text string) (all []string) {
	for _, brand := range brands {
		if strings.Contains(text, brand) {
			all = append(all, brand)
		}
	}
	return all
}

// The sorts of drivers that register with a kubelet, as they are in the names of their DaemonSets.
const (
	CSI = "csi"
	DRA = "dra"
)

// Driver is the DaemonSet of a driver of a sort: that which has the driver's name in an argument or in a path that it mounts, or else what begins that name, or its vendor, in its
// names; nil if none is like it.
func Driver(v *view.View, driver, sort string) *appsv1.DaemonSet {
	type driverOf struct{ driver, sort string }
	return view.Once(v, driverOf{driver, sort}, func() *appsv1.DaemonSet {
		_, rest, _ := strings.Cut(driver, ".")
		vendor, _, _ := strings.Cut(rest, ".")
		short := shortName(driver, sort)
		var named, branded *appsv1.DaemonSet
		for _, d := range v.Snap.DaemonSets {
			names, all := namesIn(d.Name, &d.Spec.Template.Spec)
			switch {
			case strings.Contains(all, driver):
				return d
			case !strings.Contains(names, sort):
			case named == nil && strings.Contains(names, short):
				named = d
			case branded == nil && sort == DRA && vendor != "" && strings.Contains(names, vendor):
				branded = d
			}
		}
		if named == nil {
			return branded
		}
		return named
	})
}

// shortName is the part of a driver's name by which it is called, such as ebs of ebs.csi.aws.com: the first that is not just its sort.
func shortName(driver, sort string) string {
	short, rest, _ := strings.Cut(driver, ".")
	if short == sort {
		short, _, _ = strings.Cut(rest, ".")
	}
	return short
}

// namesIn are the name of a DaemonSet or a Deployment with those of its containers and images, and all of these with what its containers are started with and the paths that it mounts, as texts.
func namesIn(name string, spec *corev1.PodSpec) (names, all string) {
	parts, more := []string{name}, []string{}
	for _, container := range spec.Containers {
		parts = append(parts, container.Name, container.Image)
		more = append(more, slices.Concat(container.Command, container.Args)...)
	}
	for _, volume := range spec.Volumes {
		if volume.HostPath != nil {
			more = append(more, volume.HostPath.Path)
		}
	}
	names = strings.Join(parts, " ")
	return names, names + " " + strings.Join(more, " ")
}

// CSINode is what the volume drivers of a node have registered; nil if none has.
func CSINode(v *view.View, node string) *storagev1.CSINode {
	type csiNodes struct{}
	return view.Once(v, csiNodes{}, func() map[string]*storagev1.CSINode {
		byName := make(map[string]*storagev1.CSINode, len(v.Snap.CSINodes))
		for _, n := range v.Snap.CSINodes {
			byName[n.Name] = n
		}
		return byName
	})[node]
}
