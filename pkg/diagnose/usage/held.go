package usage

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// charge is the resources that one pod holds.
func (l *ledger) charge(pod *corev1.Pod) Held {
	h := Held{CPU: request.OfResource(pod, corev1.ResourceCPU), Memory: request.OfResource(pod, corev1.ResourceMemory), Pods: 1}
	for _, kind := range l.kinds {
		if n := request.OfResource(pod, kind); n > 0 {
			if h.Devices == nil {
				h.Devices = map[corev1.ResourceName]int64{}
			}
			h.Devices[kind] = n
		}
	}
	return h
}

// held is the resources that a consumer holds on nodes that exist. Pods that are being deleted count: their room is not free yet.
func (l *ledger) held(h *view.Consumer) Held {
	sum := Held{Devices: map[corev1.ResourceName]int64{}}
	for _, p := range h.Pods {
		if l.w.Cluster().Node(p.Spec.NodeName) != nil || !l.w.Snap.CanList("nodes", "") {
			sum.Add(l.charge(p))
		}
	}
	return sum
}

// demand is the requests of pods that are, or would be, members of a job: one sample a role.
func (l *ledger) demand(g *gang.Gang) Held {
	sum := Held{Devices: map[corev1.ResourceName]int64{}}
	for _, role := range g.Roles {
		sum.Add(l.charge(l.w.Sample(g, role)).times(int64(role.Replicas)))
	}
	return sum
}

// times is the resources that n of them hold together.
func (h Held) times(n int64) Held {
	product := Held{Devices: map[corev1.ResourceName]int64{}, CPU: h.CPU * n, Memory: h.Memory * n, Pods: h.Pods * n}
	for kind, amount := range h.Devices {
		product.Devices[kind] = amount * n
	}
	return product
}
