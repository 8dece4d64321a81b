// Package agreement compares gangctl's diagnosis of a gang with what the scheduler does with it, over random scenarios on a real
// control plane. A scenario is a value that its seed determines; a Stage creates it on a cluster and compares both for each gang.
package agreement

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

// Scenario is a cluster, what runs on it, and the gangs that are submitted one after the other.
type Scenario struct {
	// Seed makes the same scenario again.
	Seed uint64
	// Nodes are as they are created: a cordon, a failed kubelet and the amounts are part of them.
	Nodes []*corev1.Node
	// Volumes are those that claims are bound to, or can be. A claim with a volume's name is bound to it.
	Volumes []*corev1.PersistentVolume
	Claims  []*corev1.PersistentVolumeClaim
	// Devices are what nodes have for resource claims; Templates are the claims that members request.
	Devices   []*resourcev1.ResourceSlice
	Templates []*resourcev1.ResourceClaimTemplate
	// Defaults are requests that a LimitRange gives to containers without one of their own.
	Defaults corev1.ResourceList
	// Residents are there before any gang. Those without a node are placed, or not, by the scheduler.
	Residents []Resident
	Gangs     []Gang
	// Leavers are the names of residents that go after the last gang was decided.
	Leavers []string
}

// Resident is a pod that is there first.
type Resident struct {
	Pod *corev1.Pod
	// Ended pods have succeeded, and hold nothing. Terminating ones are being deleted and do not go.
	Ended, Terminating bool
}

// Form is how the members of a gang are tied together.
type Form string

// The forms.
const (
	ByObject Form = "PodGroup" // by a PodGroup
	ByLabels Form = "labels"   // by labels alone
	ByJob    Form = "TFJob"    // by a PodGroup, and the Training Operator makes the pods
	Alone    Form = "pod"      // a pod on its own
)

// Hold is what keeps a gang from the scheduler until gangctl's answer is recorded.
type Hold string

// The holds.
const (
	Gate   Hold = "gate"   // every pod has a scheduling gate
	Object Hold = "object" // the PodGroup comes last
	Never  Hold = "never"  // it is never released: pods are missing, or the PodGroup is
)

// Gang is one gang of a scenario.
type Gang struct {
	Name string
	Form Form
	Hold Hold
	// Min is the number of members below which it does not start.
	Min  int32
	Pods []*corev1.Pod
	// Trap is set if members differ, or if where one is placed decides where others may be: a scheduler that places one after
	// the other may then miss a placement.
	Trap bool
}

// Missing is what keeps a gang from being tried at all: the object, or members. Empty if nothing does.
func (g *Gang) Missing() string {
	switch {
	case int32(len(g.Pods)) < g.Min:
		return "members"
	case g.Hold == Never:
		return "object"
	}
	return ""
}

// target is the object that gangctl is queried about, as KIND/NAME.
func (g *Gang) target() string {
	if g.Form == ByJob {
		return "tfjob/" + g.Name
	}
	return "pod/" + g.Pods[0].Name
}

// hasObject reports whether there is a PodGroup for the gang, or should be.
func (g *Gang) hasObject() bool { return g.Form == ByObject || g.Form == ByJob }

// object is the PodGroup of a gang.
func (g *Gang) object(namespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": g.Name, "namespace": namespace},
		"spec":     map[string]any{"minMember": int64(g.Min)},
	}}
	u.SetGroupVersionKind(schedulerplugins.GVK())
	return u
}
