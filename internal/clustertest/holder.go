package clustertest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Runs adds a job that has run for two hours, with one worker on each node.
func (c *Cluster) Runs(name string, gpus int64, nodes ...string) *Cluster {
	return c.Add(Gang{Namespace: "research", Name: name, Workers: len(nodes), GPUs: gpus, Nodes: nodes, Age: 2 * time.Hour})
}

// Serves adds a Deployment, which never ends, with one pod on each node.
func (c *Cluster) Serves(name string, gpus int64, nodes ...string) *Cluster {
	d := c.Deployment("serving", name, "serve:v1")
	yes := true
	for i, node := range nodes {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "serving", Name: fmt.Sprintf("%s-abc-%d", name, i), Labels: map[string]string{"pod-template-hash": "abc"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: d.Name + "-abc", UID: "rs:" + uid("", "serving", name), Controller: &yes}}}}
		p.UID = uid("Pod", p.Namespace, p.Name)
		p.Spec = Gang{Scheduler: Scheduler}.spec(Role{GPUs: gpus})
		p.Spec.NodeName, p.Spec.RestartPolicy, p.Status.Phase = node, corev1.RestartPolicyAlways, corev1.PodRunning
		c.put(p)
	}
	return c
}

// ServesWith is Serves with another request of cpu.
func (c *Cluster) ServesWith(name string, gpus int64, cpu string, nodes ...string) *Cluster {
	c.Serves(name, gpus, nodes...)
	for _, p := range c.S.Pods {
		if p.Namespace == "serving" && p.Labels["pod-template-hash"] == "abc" && len(p.OwnerReferences) > 0 && p.OwnerReferences[0].Name == name+"-abc" {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
			p.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse(cpu)
		}
	}
	return c
}

// Daemon adds a pod of a DaemonSet to a node.
func (c *Cluster) Daemon(name, node, cpu string) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name + "-" + node, UID: uid("Pod", "kube-system", name+"-"+node),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: name, UID: uid("DaemonSet", "kube-system", name), Controller: &yes}}}}
	p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
	p.Spec.Containers = []corev1.Container{{Name: name, Resources: corev1.ResourceRequirements{Requests: List("cpu", cpu)}}}
	c.put(p)
	return p
}
