package placement

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Constraint is the stable, lower-case name of one rule by which a node rejects a pod. A shortage is `resource:<name>`.
type Constraint string

// Constraints are a set of constraints, for example those that a what-if ignores.
type Constraints = sets.Set[Constraint]

// The constraints. Resource gives that of a resource.
const (
	// Pods: the node's pod slots (allocatable `pods`) are used up.
	Pods Constraint = "pods"
	// NodeName: the pod names another node in spec.nodeName.
	NodeName Constraint = "nodeName"
	// NodeSelector: a label of spec.nodeSelector is absent or different.
	NodeSelector Constraint = "nodeSelector"
	// NodeAffinity: the required node affinity does not match.
	NodeAffinity Constraint = "nodeAffinity"
	// Taint: a NoSchedule or NoExecute taint is not tolerated, other than those that Kubernetes sets for Cordon and NotReady.
	Taint Constraint = "taint"
	// Cordon: spec.unschedulable is set and not tolerated.
	Cordon Constraint = "cordon"
	// NotReady: the Ready condition is not True, or a taint node.kubernetes.io/* reports a problem of the node.
	NotReady Constraint = "notReady"
	// Deleting: the node is being deleted.
	Deleting Constraint = "deleting"
	// HostPort: a host port is taken.
	HostPort Constraint = "hostPort"
	// PodAffinity: the required pod affinity is not satisfied.
	PodAffinity Constraint = "podAffinity"
	// PodAntiAffinity: the pod's required anti-affinity, or that of a pod that is there, is violated.
	PodAntiAffinity Constraint = "podAntiAffinity"
	// TopologySpread: a topology spread constraint with DoNotSchedule would be violated.
	TopologySpread Constraint = "topologySpread"
	// VolumeZone: a bound volume belongs to another zone or region.
	VolumeZone Constraint = "volumeZone"
	// VolumeNode: a bound volume cannot be reached from the node, or an unbound one cannot be provisioned for it.
	VolumeNode Constraint = "volumeNode"
	// VolumeLimits: the node cannot attach as many volumes of the driver.
	VolumeLimits Constraint = "volumeLimits"
	// VolumeClaim: a claim is missing, lost, being deleted, unbound in class mode Immediate, or a ReadWriteOncePod one in use. It rejects
	// the pod from every node.
	VolumeClaim Constraint = "volumeClaim"
	// DRADevices: the devices that the pod's resource claims request cannot be allocated on the node.
	DRADevices Constraint = "draDevices"
	// Topology: the node is outside the topology domain that the gang must share. Place uses it, Matrix does not.
	Topology Constraint = "topology"
)

const resourcePrefix = "resource:"

// Resource returns the constraint of a shortage of a resource; of `pods`, which is a resource too, it is Pods.
func Resource(name corev1.ResourceName) Constraint {
	if name == corev1.ResourcePods {
		return Pods
	}
	return Constraint(resourcePrefix + string(name))
}

// ResourceName returns the resource that a shortage is about, and whether the constraint is one.
func (c Constraint) ResourceName() (corev1.ResourceName, bool) {
	if c == Pods {
		return corev1.ResourcePods, true
	}
	name, ok := strings.CutPrefix(string(c), resourcePrefix)
	return corev1.ResourceName(name), ok
}

// Static reports whether a constraint keeps a member off a node whatever else runs there.
func (c Constraint) Static() bool {
	switch c {
	case NodeName, NodeSelector, NodeAffinity, Taint, Cordon, NotReady, Deleting, VolumeZone, VolumeNode:
		return true
	default:
		return false
	}
}

// order is how constraints are listed: what no placement changes first, then what is used up.
var order = []Constraint{
	NodeName, NodeSelector, NodeAffinity, Taint, Cordon, NotReady, Deleting, VolumeClaim, VolumeZone, VolumeNode, VolumeLimits,
	HostPort, PodAffinity, PodAntiAffinity, TopologySpread, DRADevices, Topology,
}

// compareConstraints puts rules in the order above, then shortages by name.
func compareConstraints(a, b Constraint) int {
	rank := func(c Constraint) int {
		if i := slices.Index(order, c); i >= 0 {
			return i
		}
		return len(order)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}
