package collect

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// trim drops what no answer needs, so that 20,000 pods stay small: who set which field, environments, probes, mounts, images
// on nodes, addresses.
func trim(obj runtime.Object) {
	if meta, ok := obj.(metav1.Object); ok {
		meta.SetManagedFields(nil)
	}
	switch o := obj.(type) {
	case *corev1.Pod:
		trimPod(o)
	case *corev1.Node:
		o.Status.Images, o.Status.Addresses, o.Status.NodeInfo = nil, nil, corev1.NodeSystemInfo{}
	}
}

func trimPod(p *corev1.Pod) {
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			c := &list[i]
			*c = corev1.Container{Name: c.Name, Image: c.Image, Resources: c.Resources, Ports: c.Ports, RestartPolicy: c.RestartPolicy}
		}
	}
	p.Spec.EphemeralContainers, p.Spec.ImagePullSecrets, p.Spec.DNSConfig, p.Spec.HostAliases = nil, nil, nil, nil
	p.Status.HostIP, p.Status.HostIPs, p.Status.PodIP, p.Status.PodIPs = "", nil, "", nil
	delete(p.Annotations, corev1.LastAppliedConfigAnnotation)
}
