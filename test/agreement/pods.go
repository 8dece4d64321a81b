package agreement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pod is a pod that requests nothing yet.
func (g *generator) pod(name string) *corev1.Pod {
	grace := int64(1)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers:                    []corev1.Container{{Name: "main", Image: "x"}},
		},
	}
}

// amounts is what a member requests: up to a divisor-th of what a node has, or exactly that part of what residents leave of it.
func (g *generator) amounts(divisor int) corev1.ResourceList {
	n := g.s.Nodes[g.IntN(len(g.s.Nodes))]
	exact := g.once(3)
	part := func(name corev1.ResourceName, unit int64) int {
		q := n.Status.Allocatable[name]
		if exact {
			return max(1, int(g.spare[n.Name][name]/unit)/divisor)
		}
		return g.between(1, max(1, int(q.MilliValue()/unit)/divisor))
	}
	requests := corev1.ResourceList{corev1.ResourceCPU: milli(100 * part(corev1.ResourceCPU, 100))}
	if g.once(2) {
		requests[corev1.ResourceMemory] = gibi(part(corev1.ResourceMemory, 1000<<30))
	}
	if _, ok := n.Status.Allocatable[gpu]; ok && !g.once(3) {
		requests[gpu] = whole(part(gpu, 1000))
	}
	if _, ok := n.Status.Allocatable[nic]; ok && g.once(3) {
		requests[nic] = whole(1)
	}
	if g.once(60) {
		requests["example.com/none"] = whole(1)
	}
	return requests
}

// setRequests sets a container's requests, with limits where Kubernetes requires them.
func setRequests(p *corev1.Pod, requests corev1.ResourceList) {
	limits := corev1.ResourceList{}
	for name, q := range requests {
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
			limits[name] = q // devices want both equal
		}
	}
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests, Limits: limits}
}

// extras change what a pod is charged: containers before and alongside its main one, and what its runtime takes.
func (g *generator) extras(p *corev1.Pod) {
	cpu := func(n int) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: milli(n)}}
	}
	if g.once(10) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "fetch", Image: "x", Resources: cpu(g.between(1, 15) * 100)})
	}
	if g.once(10) {
		always := corev1.ContainerRestartPolicyAlways
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "side", Image: "x", RestartPolicy: &always, Resources: cpu(g.between(1, 10) * 100)})
	}
	if g.once(10) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "log", Image: "x", Resources: cpu(g.between(1, 5) * 100)})
	}
	if g.once(20) && p.Spec.NodeSelector[poolLabel] == "" {
		class := overheadClass
		p.Spec.RuntimeClassName = &class
	}
	if g.once(20) { // for the pod as a whole, at least what its containers request
		sum := int64(g.between(0, 10) * 100)
		for _, k := range append(p.Spec.InitContainers, p.Spec.Containers...) {
			sum += k.Resources.Requests.Cpu().MilliValue()
		}
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: milli(int(sum))}}
	}
}

func hostPort(p *corev1.Pod, port int32) {
	k := &p.Spec.Containers[0]
	k.Ports = append(k.Ports, corev1.ContainerPort{Name: fmt.Sprintf("port-%d", port), ContainerPort: port, HostPort: port})
}

func affinityOf(p *corev1.Pod) *corev1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	return p.Spec.Affinity
}

func keepApart(p *corev1.Pod, key string, about *metav1.LabelSelector) {
	a := affinityOf(p)
	if a.PodAntiAffinity == nil {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	list := &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*list = append(*list, corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: about})
}

func keepTogether(p *corev1.Pod, key string, about *metav1.LabelSelector) {
	a := affinityOf(p)
	if a.PodAffinity == nil {
		a.PodAffinity = &corev1.PodAffinity{}
	}
	list := &a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*list = append(*list, corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: about})
}

func mount(p *corev1.Pod, claim string) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}})
}
