package request

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Vendor is a maker of devices, and how they show on a node before a device plugin, or a DRA driver, offers them: by labels of node feature discovery, of
// a cloud or its autoscaler, or of the maker's own.
type Vendor struct {
	Name string
	// Device is the resource of its whole devices, and Domain that of its DRA drivers.
	Device corev1.ResourceName
	Domain string
	// labels are such labels. One with a value stands for all values that begin with that.
	labels []string
	// counts are the labels of how many devices there are, whoever made them.
	counts []string
}

const (
	pci       = "feature.node.kubernetes.io/pci-" // and the class, if the label has that, and the vendor
	gke       = "cloud.google.com/gke-"
	karpenter = "karpenter.k8s.aws/instance-"
	azure     = "karpenter.azure.com/sku-gpu-"

	nvidia corev1.ResourceName = "nvidia.com/gpu"
)

// vendors are those that are known.
var vendors = []Vendor{
	{"NVIDIA", nvidia, "nvidia.com",
		[]string{"nvidia.com/gpu.present", "nvidia.com/gpu.count", pci + "10de.present", pci + "0300_10de.present", pci + "0302_10de.present", gke + "accelerator=nvidia",
			"k8s.amazonaws.com/accelerator=nvidia", "kubernetes.azure.com/accelerator=nvidia", karpenter + "gpu-manufacturer=nvidia", azure + "manufacturer=nvidia"},
		[]string{"nvidia.com/gpu.count", gke + "accelerator-count", karpenter + "gpu-count", azure + "count"}},
	{"AMD", "amd.com/gpu", "amd.com",
		[]string{"amd.com/gpu.device-id", "feature.node.kubernetes.io/amd-gpu", pci + "1002.present", pci + "0380_1002.present", pci + "1200_1002.present",
			karpenter + "gpu-manufacturer=amd", azure + "manufacturer=amd"},
		[]string{karpenter + "gpu-count", azure + "count"}},
	{"Habana", "habana.ai/gaudi", "gaudi.intel.com",
		[]string{pci + "1da3.present", pci + "1200_1da3.present", karpenter + "accelerator-manufacturer=habana"}, []string{karpenter + "accelerator-count"}},
	{"AWS Neuron", "aws.amazon.com/neuron", "neuron.aws.com",
		[]string{karpenter + "accelerator-manufacturer=aws", corev1.LabelInstanceTypeStable + "=trn", corev1.LabelInstanceTypeStable + "=inf"}, []string{karpenter + "accelerator-count"}},
	{"Huawei", "huawei.com/Ascend910", "huawei.com", []string{pci + "1200_19e5.present", "accelerator=huawei-Ascend"}, nil},
	{"Intel", "gpu.intel.com/i915", "intel.com", []string{"intel.feature.node.kubernetes.io/gpu"}, nil},
	{"Google", "google.com/tpu", "google.com", []string{gke + "tpu-accelerator"}, []string{gke + "accelerator-count"}},
}

// Vendors are the makers whose devices are recognised. The caller does not change them.
func Vendors() []Vendor { return vendors }

// Prefix is what the names of the vendor's resources begin with.
func (v *Vendor) Prefix() string { return strings.SplitAfter(string(v.Device), "/")[0] }

// Labelled reports whether a node has devices of the vendor, by its labels.
func (v *Vendor) Labelled(n *corev1.Node) bool {
	return slices.ContainsFunc(v.labels, func(label string) bool {
		key, begins, _ := strings.Cut(label, "=")
		value, ok := n.Labels[key]
		return ok && value != "false" && value != "0" && strings.HasPrefix(value, begins)
	})
}

// Drives reports whether a DRA driver is one of the vendor that offers devices. Channels between GPUs, which NVIDIA's other driver offers, are none.
func (v *Vendor) Drives(driver string) bool {
	return (driver == v.Domain || strings.HasSuffix(driver, "."+v.Domain)) && !strings.HasPrefix(driver, "compute-domain.")
}

// VendorOf is the vendor of a resource; nil if it is not known.
func VendorOf(name corev1.ResourceName) *Vendor {
	for i := range vendors {
		if strings.HasPrefix(string(name), vendors[i].Prefix()) {
			return &vendors[i]
		}
	}
	return nil
}

// Labelled reports whether a node has, by its labels, whole devices of the vendor of a resource.
func Labelled(n *corev1.Node, name corev1.ResourceName) bool {
	v := VendorOf(name)
	return v != nil && v.Labelled(n) && !isMIG(name) && !(IsGPU(name) && Sliced(n))
}

// Counted are the devices that the labels of a node count: each by a label of its own name, or by one for the devices of its vendor.
func Counted(n *corev1.Node) corev1.ResourceList {
	list := corev1.ResourceList{}
	count := func(name corev1.ResourceName, label string) {
		if q, err := resource.ParseQuantity(n.Labels[label]); err == nil && q.Sign() > 0 && IsDevice(name) {
			list[name] = q
		}
	}
	for i := range vendors {
		if v := &vendors[i]; v.Labelled(n) {
			for _, label := range v.counts {
				count(v.Device, label)
			}
		}
	}
	for label := range n.Labels {
		if name, counts := strings.CutSuffix(label, ".count"); counts {
			count(corev1.ResourceName(name), label)
		}
	}
	if Sliced(n) {
		delete(list, nvidia)
	}
	return list
}
