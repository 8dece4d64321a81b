// Package kai reads the PodGroups of the KAI scheduler (scheduling.run.ai/v2alpha2), whose conditions carry structured
// reasons.
package kai

import (
	"math"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
)

const (
	// Group is the API group of PodGroups and Queues.
	Group = "scheduling.run.ai"

	groupAnnotation = "pod-group-name"
	roleLabel       = "kai.scheduler/subgroup-name"
	queueLabel      = "kai.scheduler/queue"
)

// QueueKind is the kind of a Queue.
func QueueKind() schema.GroupKind { return schema.GroupKind{Group: Group, Kind: "Queue"} }

// NameOf returns the PodGroup that a pod names.
func NameOf(pod metav1.Object) (string, bool) {
	name := pod.GetAnnotations()[groupAnnotation]
	return name, name != ""
}

// RoleOf returns the subgroup that a pod belongs to.
func RoleOf(pod metav1.Object) string { return strings.ToLower(pod.GetLabels()[roleLabel]) }

// Decode reads a PodGroup. Without spec.queue the label of the object counts.
func Decode(u *unstructured.Unstructured) (gang.Declaration, error) {
	d, err := gang.DecodeGroup(gang.KAI, u)
	if d.Queue == "" {
		d.Queue = u.GetLabels()[queueLabel]
	}
	f := gang.Fields{Object: u, Err: err}
	t := gang.Topology{Required: f.String("spec", "topologyConstraint", "requiredTopologyLevel")}
	if preferred := f.String("spec", "topologyConstraint", "preferredTopologyLevel"); preferred != "" {
		t.Preferred = []string{preferred}
	}
	d.SetTopology(f.Topology(t, "spec", "topologyConstraint"), gang.TopologyField)
	groups := f.List("spec", "subGroups")
	if f.FewRoles(len(groups), "spec", "subGroups") {
		d.RoleMin = subGroups(groups)
	}
	if slices.ContainsFunc(groups, func(g map[string]any) bool { return g["topologyConstraint"] != nil }) {
		d.Unapplied = append(d.Unapplied, gang.UnappliedRule{Text: "the topologyConstraint of parts of the gang in spec.subGroups", Required: true})
	}
	for _, c := range f.List("status", "schedulingConditions") {
		if c["status"] != "True" {
			continue
		}
		condition := gang.ConditionOf(c)
		reasons, _ := c["reasons"].([]any)
		if len(reasons) > 0 {
			if first, ok := reasons[0].(map[string]any); ok {
				detail := gang.ConditionOf(first)
				condition.Reason, condition.Message = detail.Reason, detail.Message
			}
		}
		d.Conditions = append(d.Conditions, condition)
	}
	return d, f.Err
}

// subGroups are the minimums of the groups that pods can be in: those that have no groups in them.
func subGroups(groups []map[string]any) map[string]int32 {
	parents := map[string]bool{}
	for _, g := range groups {
		if name, ok := g["parent"].(string); ok {
			parents[name] = true
		}
	}
	var mins map[string]int32
	for _, g := range groups {
		name, _ := g["name"].(string)
		n, _ := g["minMember"].(int64)
		if name == "" || parents[name] || n < 1 || n > math.MaxInt32 {
			continue
		}
		if mins == nil {
			mins = map[string]int32{}
		}
		mins[strings.ToLower(name)] = int32(n)
	}
	return mins
}

// Reader reads this dialect.
func Reader() gang.Reader {
	return gang.Reader{
		Dialect:    gang.KAI,
		Kinds:      []gang.Served{{GroupKind: schema.GroupKind{Group: Group, Kind: "PodGroup"}, Resource: "podgroups"}},
		Schedulers: []string{"kai-scheduler"}, NameOf: NameOf, RoleOf: RoleOf, Decode: Decode,
	}
}
