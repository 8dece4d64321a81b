package engine

import (
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// withPods wraps a clientset of which only the client of pods is another: wrap returns it for a namespace.
func withPods(client kubernetes.Interface, wrap func(namespace string, pods typedcorev1.PodInterface) typedcorev1.PodInterface) kubernetes.Interface {
	return &podsClientset{Interface: client, wrap: wrap}
}

type podsClientset struct {
	kubernetes.Interface
	wrap func(string, typedcorev1.PodInterface) typedcorev1.PodInterface
}

// CoreV1 implements kubernetes.Interface.
func (c *podsClientset) CoreV1() typedcorev1.CoreV1Interface {
	return &podsCore{CoreV1Interface: c.Interface.CoreV1(), wrap: c.wrap}
}

type podsCore struct {
	typedcorev1.CoreV1Interface
	wrap func(string, typedcorev1.PodInterface) typedcorev1.PodInterface
}

// Pods implements typedcorev1.PodsGetter.
func (c *podsCore) Pods(namespace string) typedcorev1.PodInterface {
	return c.wrap(namespace, c.CoreV1Interface.Pods(namespace))
}
