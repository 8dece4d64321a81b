package request

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels of a cloud, of node feature discovery and of the vendor show what a node has; some count it.
func TestCounted(t *testing.T) {
	for name, c := range map[string]struct {
		labels map[string]string
		of     corev1.ResourceName
		has    bool
		count  int64
	}{
		"none":                            {nil, "nvidia.com/gpu", false, 0},
		"the vendor":                      {map[string]string{"nvidia.com/gpu.count": "8"}, "nvidia.com/gpu", true, 8},
		"no":                              {map[string]string{"nvidia.com/gpu.present": "false"}, "nvidia.com/gpu", false, 0},
		"Google":                          {map[string]string{"cloud.google.com/gke-accelerator": "nvidia-l4", "cloud.google.com/gke-accelerator-count": "4"}, "nvidia.com/gpu", true, 4},
		"a count of another's":            {map[string]string{"cloud.google.com/gke-tpu-accelerator": "tpu-v5p-slice", "cloud.google.com/gke-accelerator-count": "4"}, "nvidia.com/gpu", false, 0},
		"of a TPU":                        {map[string]string{"cloud.google.com/gke-tpu-accelerator": "tpu-v5p-slice", "cloud.google.com/gke-accelerator-count": "4"}, "google.com/tpu", true, 4},
		"Karpenter, of AMD":               {map[string]string{"karpenter.k8s.aws/instance-gpu-manufacturer": "amd", "karpenter.k8s.aws/instance-gpu-count": "1"}, "amd.com/gpu", true, 1},
		"discovery, by class and vendor":  {map[string]string{"feature.node.kubernetes.io/pci-0302_10de.present": "true"}, "nvidia.com/gpu", true, 0},
		"GPUs that are cut":               {map[string]string{"nvidia.com/gpu.count": "8", "nvidia.com/mig.strategy": "mixed", "nvidia.com/mig.config": "all-1g.10gb"}, "nvidia.com/gpu", false, 0},
		"GPUs that are cut, under a name": {map[string]string{"nvidia.com/gpu.count": "8", "nvidia.com/mig.strategy": "single", "nvidia.com/mig.config": "all-1g.10gb"}, "nvidia.com/gpu", true, 8},
		"GPUs that stay whole":            {map[string]string{"nvidia.com/gpu.count": "8", "nvidia.com/mig.strategy": "mixed", "nvidia.com/mig.config": "all-disabled"}, "nvidia.com/gpu", true, 8},
		"slices":                          {map[string]string{"nvidia.com/gpu.present": "true"}, "nvidia.com/mig-1g.10gb", false, 0},
		"Karpenter, of Neuron":            {map[string]string{"karpenter.k8s.aws/instance-accelerator-manufacturer": "aws", "karpenter.k8s.aws/instance-accelerator-count": "16"}, "aws.amazon.com/neuroncore", true, 0},
		"an instance type":                {map[string]string{"node.kubernetes.io/instance-type": "trn1.32xlarge"}, "aws.amazon.com/neuron", true, 0},
		"Gaudi, by discovery":             {map[string]string{"feature.node.kubernetes.io/pci-1200_1da3.present": "true"}, "habana.ai/gaudi", true, 0},
		"an NVMe of the maker of Ascend":  {map[string]string{"feature.node.kubernetes.io/pci-0108_19e5.present": "true"}, "huawei.com/Ascend910", false, 0},
		"a number that cannot be":         {map[string]string{"nvidia.com/gpu.count": "many"}, "nvidia.com/gpu", true, 0},
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: c.labels}}
		counted := Counted(n)[c.of]
		if has := Labelled(n, c.of); has != c.has || counted.Value() != c.count {
			t.Errorf("%s: %t, %d of %s, want %t, %d", name, has, counted.Value(), c.of, c.has, c.count)
		}
	}
}

func TestMIGSize(t *testing.T) {
	for name, want := range map[corev1.ResourceName]string{"nvidia.com/mig-3g.40gb": "3", "nvidia.com/mig-1g.10gb.me": "1", "nvidia.com/gpu": "", "nvidia.com/mig-3g40": "", "nvidia.com/mig": ""} {
		if got := MIGSize(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
