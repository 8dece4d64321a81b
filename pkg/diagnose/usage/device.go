package usage

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	v1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// noDevice are parts of the names of extended resources that compute nothing: networks, and files that pods may open.
var noDevice = []string{"rdma", "sriov", "nic", "pod-eni", "ipv4", "ipv6", "fuse", "kvm", "vhost", "tun", "network"}

// IsDevice reports whether a resource counts accelerators: GPUs, their slices (MIG), and whatever else vendors plug in.
func IsDevice(name corev1.ResourceName) bool {
	if !v1helper.IsExtendedResourceName(name) {
		return false
	}
	if request.IsGPU(name) {
		return true
	}
	text := strings.ToLower(string(name))
	return !slices.ContainsFunc(noDevice, func(part string) bool { return strings.Contains(text, part) })
}

// Short is the name of a kind of device in a table: nvidia.com/gpu is nvidia, nvidia.com/mig-1g.5gb is mig-1g.5gb.
func Short(kind corev1.ResourceName) string {
	domain, name, _ := strings.Cut(string(kind), "/")
	if name == "gpu" {
		vendor, _, _ := strings.Cut(domain, ".")
		return vendor
	}
	return name
}

// kindsOf are the kinds of device that nodes have or pods hold, GPUs first.
func kindsOf(w *view.View) []corev1.ResourceName {
	found := map[corev1.ResourceName]bool{}
	for _, n := range w.Snap.Nodes {
		for _, list := range []corev1.ResourceList{n.Status.Capacity, n.Status.Allocatable} {
			for name, q := range list {
				if !found[name] && IsDevice(name) && !q.IsZero() {
					found[name] = true
				}
			}
		}
	}
	for _, h := range w.Consumers() {
		for _, p := range h.Pods {
			addKinds(found, p)
		}
	}
	return slices.SortedFunc(maps.Keys(found), compareKinds)
}

// addKinds adds the kinds of device that a pod requests.
func addKinds(found map[corev1.ResourceName]bool, p *corev1.Pod) {
	for _, list := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range list {
			for name := range list[i].Resources.Requests {
				if !found[name] && IsDevice(name) {
					found[name] = true
				}
			}
		}
	}
}

// withRequested adds the kinds of device that jobs request which have not ended: no node may have one yet, as of a pool that is scaled to zero, or
// none that the caller may list. Reports on nodes are made without: what only a job names is no column of theirs.
func (l *ledger) withRequested() *ledger {
	found := map[corev1.ResourceName]bool{}
	for _, kind := range l.kinds {
		found[kind] = true
	}
	for _, s := range l.w.Jobs() {
		if s.End != nil {
			continue
		}
		g := l.w.Gang(s)
		for _, role := range g.Roles {
			addKinds(found, l.w.Sample(g, role))
		}
	}
	l.kinds = slices.SortedFunc(maps.Keys(found), compareKinds)
	return l
}

// compareKinds puts whole GPUs first, then the rest by name.
func compareKinds(a, b corev1.ResourceName) int {
	rank := func(n corev1.ResourceName) int {
		if request.IsGPU(n) {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

// Uncounted is how many ResourceClaims have devices allocated. Devices that drivers offer in ResourceSlices may overlap, as the slices of
// a GPU do, or belong to no node: there is no number of them to use some of, as there is of an extended resource. Claims that stand for
// an extended resource of a pod are counted as that.
func Uncounted(s *snapshot.Snapshot) int {
	n := 0
	for _, c := range s.ResourceClaims {
		if c.Status.Allocation == nil || c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true" {
			continue
		}
		for _, d := range c.Status.Allocation.Devices.Results {
			if d.AdminAccess == nil || !*d.AdminAccess { // to watch over a device is not to hold it
				n++
				break
			}
		}
	}
	return n
}
