package component

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
)

// A device plugin is found by what it is called, and by the folder in which it registers; a program that registers there for something else is none for all.
func TestDevicePlugin(t *testing.T) {
	c := clustertest.New()
	add := func(name, image, path string) {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: image}}
		d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}}}
		c.Put(d)
	}
	add("rdma-shared-dp-ds", "k8s-rdma-shared-dev-plugin:v1.5.2", "/dev")
	add("gaudi-ds", "habana/plugin", "/var/lib/kubelet/device-plugins")
	add("virt-handler", "kubevirt/virt-handler", "/var/lib/kubelet/device-plugins")
	v := view.New(c.Done())
	for resource, want := range map[corev1.ResourceName]string{"rdma/hca_shared_devices_a": "rdma-shared-dp-ds", "habana.ai/gaudi": "gaudi-ds", "nvidia.com/gpu": ""} {
		got := ""
		if d := DevicePlugin(v, resource); d != nil {
			got = d.Name
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", resource, got, want)
		}
	}
}
