package placement

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// node is one node with its pods. It is never changed once it is in a Cluster, so copies of a Cluster share it.
type node struct {
	obj         *corev1.Node
	info        *framework.NodeInfo
	alloc, used vector
	// was is what a what-if has changed the pods of; nil of a node that is as it is in the cluster.
	was *framework.NodeInfo
	// attached are the volumes that are attached to it, once it is looked at.
	attached atomic.Pointer[attached]
}

func newNode(obj *corev1.Node, pods []fwk.PodInfo) *node {
	info := framework.NewNodeInfo()
	info.SetNode(obj)
	info.Pods = make([]fwk.PodInfo, 0, len(pods))
	for _, p := range pods {
		info.AddPodInfo(p)
	}
	return &node{obj: obj, info: info}
}

// withPods is the same node with other pods: what depends on the node alone is not worked out again.
func (n *node) withPods(pods []fwk.PodInfo) *node {
	info := *n.info
	info.Pods = make([]fwk.PodInfo, 0, len(pods))
	info.PodsWithAffinity, info.PodsWithRequiredAntiAffinity, info.PodsWithRequiredNonHostScopedAntiAffinity = nil, nil, nil
	info.Requested, info.NonZeroRequested = &framework.Resource{}, &framework.Resource{}
	info.UsedPorts, info.PVCRefCounts = fwk.HostPortInfo{}, map[string]int{}
	for _, p := range pods {
		info.AddPodInfo(p)
	}
	return &node{obj: n.obj, info: &info, was: cmp.Or(n.was, n.info)}
}

// as is the node with another object, and the pods that it has.
func (n *node) as(obj *corev1.Node) *node {
	changed := newNode(obj, n.info.Pods)
	changed.was = n.was
	return changed
}

// keep returns the node with only the pods that f accepts; n itself if these are all.
func (n *node) keep(f func(*corev1.Pod) bool) *node {
	left := make([]fwk.PodInfo, 0, len(n.info.Pods))
	for _, p := range n.info.Pods {
		if f(p.GetPod()) {
			left = append(left, p)
		}
	}
	if len(left) == len(n.info.Pods) {
		return n
	}
	return n.withPods(left)
}

// holds reports whether a pod is on the node.
func (n *node) holds(uid types.UID) bool {
	return slices.ContainsFunc(n.info.Pods, func(p fwk.PodInfo) bool { return PodID(p.GetPod()) == uid })
}

// has is holds for the same object.
func (n *node) has(pod *corev1.Pod) bool {
	return slices.ContainsFunc(n.info.Pods, func(p fwk.PodInfo) bool { return p.GetPod() == pod })
}

// Holds reports whether a pod uses resources of a node: it is bound and has neither succeeded nor failed.
func Holds(p *corev1.Pod) bool {
	return p.Spec.NodeName != "" && !podutil.IsPodTerminal(p)
}

// PodID is the pod's UID, or its namespace and name where it has none.
func PodID(p *corev1.Pod) types.UID {
	if p.UID != "" {
		return p.UID
	}
	return types.UID(p.Namespace + "/" + p.Name)
}

// PodIDs are the [PodID] of some pods.
func PodIDs(pods []*corev1.Pod) []types.UID {
	ids := make([]types.UID, 0, len(pods))
	for _, p := range pods {
		ids = append(ids, PodID(p))
	}
	return ids
}

func comparePods(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// podInfo parses a pod. Affinity terms that do not parse are left out, as in the scheduler.
func podInfo(p *corev1.Pod) *framework.PodInfo {
	info, _ := framework.NewPodInfo(p)
	return info
}

// podInfos parses pods. What is the same for several pods, because they point to the same containers, is worked out once: in a
// snapshot of a large cluster most pods are one of a few kinds.
type podInfos map[podKind]*framework.PodInfo

// podKind is all that the amounts of a pod are computed from, for a pod without affinity and without overhead.
type podKind struct {
	containers, inits     *corev1.Container
	statuses, initsStatus *corev1.ContainerStatus
	conditions            *corev1.PodCondition
	resources             *corev1.ResourceRequirements
	statusResources       *corev1.ResourceRequirements
	lengths               [5]int
}

// of returns the parsed pod.
func (k podInfos) of(p *corev1.Pod) *framework.PodInfo {
	kind, ok := kindOf(p)
	if !ok {
		return podInfo(p)
	}
	like := k[kind]
	if like == nil {
		like = podInfo(p)
		like.CalculateResource() // it keeps the result, for those that are copied from it
		k[kind] = like
		return like
	}
	info := *like
	info.Pod = p
	return &info
}

// all returns the parsed pods.
func (k podInfos) all(pods []*corev1.Pod) []fwk.PodInfo {
	infos := make([]fwk.PodInfo, 0, len(pods))
	for _, p := range pods {
		infos = append(infos, k.of(p))
	}
	return infos
}

// kindOf returns the kind of a pod; ok is false for one whose amounts depend on more than that.
func kindOf(p *corev1.Pod) (kind podKind, ok bool) {
	spec, status := &p.Spec, &p.Status
	if spec.Affinity != nil || len(spec.Overhead) > 0 || len(spec.Containers) == 0 || len(status.AllocatedResources) > 0 || status.ExtendedResourceClaimStatus != nil ||
		len(status.NodeAllocatableResourceClaimStatuses) > 0 {
		return podKind{}, false
	}
	return podKind{
		containers: first(spec.Containers), inits: first(spec.InitContainers), statuses: first(status.ContainerStatuses), initsStatus: first(status.InitContainerStatuses),
		conditions: first(status.Conditions), resources: spec.Resources, statusResources: status.Resources,
		lengths: [5]int{len(spec.Containers), len(spec.InitContainers), len(status.ContainerStatuses), len(status.InitContainerStatuses), len(status.Conditions)},
	}, true
}

// first is the address of the first element, which reports whether two slices share their elements.
func first[T any](list []T) *T {
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

// NotReadyCondition is the condition by which a node is reported not to be Ready; nil for one that is. A node without the condition counts as ready, as for the scheduler.
func NotReadyCondition(n *corev1.Node) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// NodeReady reports whether a node is ready.
func NodeReady(n *corev1.Node) bool { return NotReadyCondition(n) == nil }

func cordonTaint(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable }

// ProblemTaint recognises the taints that Kubernetes, cloud providers and autoscalers set on a node that is not fit for use. No pod should tolerate one
// to find room.
func ProblemTaint(t corev1.Taint) bool {
	return !cordonTaint(t) && (RemovalTaint(t) || StartupTaint(t) || healthTaint(t) ||
		strings.HasPrefix(t.Key, "node.kubernetes.io/") || strings.HasPrefix(t.Key, "node.cloudprovider.kubernetes.io/"))
}

// RemovalTaint recognises the taints of a node that is about to go: autoscalers remove it, or its provider takes it back.
func RemovalTaint(t corev1.Taint) bool {
	switch t.Key {
	case "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption", "cloud.google.com/impending-node-termination":
		return true
	}
	return strings.HasPrefix(t.Key, "aws-node-termination-handler/")
}

// healthTaint recognises the taints with which operators and providers take a sick node out of use until it is well again or replaced: those of medik8s, and any that is
// named after that, such as sagemaker.amazonaws.com/node-health-status.
func healthTaint(t corev1.Taint) bool {
	domain, name, ok := strings.Cut(t.Key, "/")
	if !ok {
		domain, name = "", t.Key
	}
	if domain == "medik8s.io" || strings.HasSuffix(domain, ".medik8s.io") {
		return true
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune("-_.", r) }) {
		switch word {
		case "health", "healthy", "unhealthy", "quarantine", "quarantined", "remediation", "remediating", "repair", "repairing":
			return true
		}
	}
	return false
}

// StartupTaint recognises the taints with which a node joins a cluster, until its autoscaler knows it, or an agent that its pods need runs there.
func StartupTaint(t corev1.Taint) bool {
	return t.Key == "karpenter.sh/unregistered" || strings.HasSuffix(t.Key, "/agent-not-ready") ||
		strings.HasPrefix(t.Key, "startup-taint.cluster-autoscaler.kubernetes.io/") || strings.HasPrefix(t.Key, "status-taint.cluster-autoscaler.kubernetes.io/")
}

// taintConstraint is the constraint that a taint is reported as.
func taintConstraint(t corev1.Taint) Constraint {
	switch {
	case cordonTaint(t):
		return Cordon
	case ProblemTaint(t):
		return NotReady
	}
	return Taint
}

// ReadyChangedAt is when a node became Ready or ceased to be, or when it was created, whichever is later.
func ReadyChangedAt(n *corev1.Node) time.Time {
	at := n.CreationTimestamp.Time
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.LastTransitionTime.After(at) {
			at = c.LastTransitionTime.Time
		}
	}
	return at
}
