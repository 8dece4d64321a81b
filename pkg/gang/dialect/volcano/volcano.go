// Package volcano reads the PodGroups of scheduling.volcano.sh/v1beta1. Its scheduler groups pods by one annotation, and
// admits a group to its queue (phase Inqueue) before it looks for nodes.
package volcano

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/networktopology"
)

const (
	// Group is the API group of PodGroups and Queues.
	Group = "scheduling.volcano.sh"
	// GroupAnnotation names the PodGroup on a pod. kube-batch uses the same key.
	GroupAnnotation = "scheduling.k8s.io/group-name"
	// ownGroupPrefix begins the names of the PodGroups that Volcano makes, one for each controller, for pods that name none.
	ownGroupPrefix = "podgroup-"
	// DefaultQueue is the CRD's default of spec.queue.
	DefaultQueue = "default"
	// RootQueue is the queue above those that name none.
	RootQueue = "root"
	// PhasePending is the phase of a group that its queue has not admitted.
	PhasePending = "Pending"
	// PhaseInqueue is the phase of a group that is admitted and holds its minResources, placed or not.
	PhaseInqueue = "Inqueue"
	// PhaseRunning is the phase of a group of which as many members as its minimum have nodes.
	PhaseRunning = "Running"
	// QueueGate is the scheduling gate that Volcano lifts itself once the queue has enough.
	QueueGate = "scheduling.volcano.sh/queue-allocation-gate"
	// SchedulerName is Volcano's own.
	SchedulerName = "volcano"

	// SchedulerAnnotation names, on a PodGroup that has no pods yet, the scheduler that its pods will have. Controllers that wait for a
	// PodGroup's admission before they create pods leave no other way to find out.
	SchedulerAnnotation = "gangctl.dev/scheduler-name"

	// QueueAnnotation names the queue of the PodGroup that Volcano makes for pods that name none: that of the pods counts, and of what owns them it counts for nothing.
	QueueAnnotation = "scheduling.volcano.sh/queue-name"

	roleAnnotation = "volcano.sh/task-spec"
)

// GroupKind is the kind of a PodGroup.
func GroupKind() schema.GroupKind { return schema.GroupKind{Group: Group, Kind: "PodGroup"} }

// QueueKind is the kind of a Queue.
func QueueKind() schema.GroupKind { return schema.GroupKind{Group: Group, Kind: "Queue"} }

// NameOf returns the PodGroup that a pod names.
func NameOf(pod metav1.Object) (string, bool) {
	name := pod.GetAnnotations()[GroupAnnotation]
	return name, name != ""
}

// MadeFor reports whether Volcano made a group itself for a pod that named none, and counts nothing by it: its name is that of the pod's controller, or of the pod, and its
// minimum is 1, as no owner states another.
func MadeFor(pod metav1.Object, d gang.Declaration) bool {
	of := pod.GetUID()
	if controller := metav1.GetControllerOfNoCopy(pod); controller != nil {
		of = controller.UID
	}
	return d.Key.Dialect == gang.Volcano && d.Key.Name == ownGroupPrefix+string(of) && d.MinMember <= 1
}

// OwnGroup reports whether Volcano made a group itself, for the pods of a controller.
func OwnGroup(d gang.Declaration) bool {
	return d.Key.Dialect == gang.Volcano && d.Owner != "" && d.Key.Name == ownGroupPrefix+string(d.Owner)
}

// TaskOf returns the task that a pod belongs to, as Volcano's scheduler compares it with the names in minTaskMember; empty for none.
func TaskOf(pod metav1.Object) string { return pod.GetAnnotations()[roleAnnotation] }

// RoleOf returns the task that a pod belongs to, in lower case.
func RoleOf(pod metav1.Object) string { return strings.ToLower(TaskOf(pod)) }

// Decode reads a PodGroup.
func Decode(u *unstructured.Unstructured) (gang.Declaration, error) {
	d, err := gang.DecodeGroup(gang.Volcano, u)
	d.Queue = cmp.Or(d.Queue, DefaultQueue)
	d.Phase = cmp.Or(d.Phase, PhasePending)
	var total int64
	for _, n := range d.RoleMin {
		total += int64(n)
	}
	// Volcano's controllers write a minimum for each task, be it only its replicas. Its scheduler does not look at them
	// where they add up to more than the group requests: that is a job which may start with fewer.
	if total > int64(d.MinMember) {
		d.RoleMin = nil
	}
	f := gang.Fields{Object: u, Err: err}
	networkTopology(&f, &d)
	return d, f.Err
}

// networkTopology reads by which HyperNodes members are together: with the mode hard in one of at most a tier, and rather in one of a lower tier; with
// soft, or without a tier, in one of the lowest tier that has room. Those that a policy for subgroups selects have its rule, each subgroup for itself.
func networkTopology(f *gang.Fields, d *gang.Declaration) {
	var t, parts gang.Topology
	if rule := f.Map("spec", "networkTopology"); rule != nil {
		t = ofTiers(f.Of(rule, "spec", "networkTopology"), d)
	}
	for _, policy := range f.List("spec", "subGroupPolicy") {
		of := f.Of(policy, "spec", "subGroupPolicy")
		rule := of.Map("networkTopology")
		if rule == nil {
			continue
		}
		tiers := ofTiers(of.Of(rule, "networkTopology"), d)
		parts.Parts = append(parts.Parts, gang.PartRule{
			Selector: of.Selector("labelSelector"), By: of.Strings("matchLabelKeys"), Required: tiers.Required, Preferred: tiers.Preferred,
		})
	}
	d.SetTopology(f.Topology(t, "spec", "networkTopology"), gang.TopologyField)
	d.SetTopology(f.Topology(parts, "spec", "subGroupPolicy"), gang.TopologyField)
}

// ofTiers is the topology by tiers of one rule. A tier above those that are read is not applied; users write any number.
func ofTiers(rule *gang.Fields, d *gang.Declaration) (topology gang.Topology) {
	tier, name := int(rule.Int32("highestTierAllowed")), rule.String("highestTierName")
	below := networktopology.MaxTier + 1 // tiers that are preferred are lower
	switch hard := rule.String("mode") != soft; {
	case !hard || !rule.Has("highestTierAllowed") && name == "":
	case tier > networktopology.MaxTier || len(name) > networktopology.MaxTierName:
		d.Unapplied = append(d.Unapplied, gang.UnappliedRule{Text: fmt.Sprintf("the network topology (at most tier %.80s)", cmp.Or(name, fmt.Sprint(tier))), Required: true})
	case name != "":
		topology.Required = networktopology.TierNameKey(name)
	default:
		topology.Required, below = networktopology.TierKey(max(tier, -1)), tier
	}
	for t := range max(below, 0) {
		topology.Preferred = append(topology.Preferred, networktopology.TierKey(t))
	}
	return topology
}

// soft is the mode of a network topology that is a preference. The default is hard.
const soft = "soft"

// Reader reads this dialect.
func Reader() gang.Reader {
	return gang.Reader{
		Dialect: gang.Volcano, Kinds: []gang.Served{{GroupKind: GroupKind(), Resource: "podgroups"}},
		Schedulers: []string{SchedulerName}, NameOf: NameOf, RoleOf: RoleOf, Decode: Decode,
	}
}

// Writer writes this dialect.
func Writer() gang.Writer {
	return gang.Writer{
		Dialect: gang.Volcano, Versions: []schema.GroupVersion{{Group: Group, Version: "v1beta1"}}, Scheduler: SchedulerName, Queues: true,
		Object: gang.NewGroup,
		SetGroup: func(pod *corev1.PodTemplateSpec, d gang.Declaration, role string) {
			SetGroup(&pod.ObjectMeta, d.Key.Name)
			if role != "" {
				metav1.SetMetaDataAnnotation(&pod.ObjectMeta, roleAnnotation, role)
			}
		},
	}
}

// SetGroup makes a pod, or the pods of a template, members of the named PodGroup.
func SetGroup(meta *metav1.ObjectMeta, name string) {
	metav1.SetMetaDataAnnotation(meta, GroupAnnotation, name)
}
