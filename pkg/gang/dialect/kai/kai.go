// Package kai reads the PodGroups of the KAI scheduler (scheduling.run.ai/v2alpha2), whose conditions carry structured
// reasons.
package kai

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

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

// QueueAmount is a resource in a queue: what it is called there, and how much one unit of its fields is.
type QueueAmount struct {
	Field string
	Name  corev1.ResourceName
	Unit  int64
}

// QueueAmounts are the resources of a queue, GPUs first.
func QueueAmounts() []QueueAmount {
	return []QueueAmount{{"gpu", "nvidia.com/gpu", 1}, {"cpu", corev1.ResourceCPU, 1}, {"memory", corev1.ResourceMemory, 1e6}}
}

// Of is what a queue has in a field of the resource, limit or quota, in the unit of request.Quantity; ok is false where it has no bound: -1, or nothing.
func (a QueueAmount) Of(queue *unstructured.Unstructured, field string) (amount int64, ok bool) {
	f := gang.Fields{Object: queue}
	switch n := f.Map("spec", "resources", a.Field)[field].(type) {
	case int64:
		return n * a.Unit, n >= 0
	case float64:
		return int64(n) * a.Unit, n >= 0
	}
	return 0, false
}

// NameOf returns the PodGroup that a pod names.
func NameOf(pod metav1.Object) (string, bool) {
	name := pod.GetAnnotations()[groupAnnotation]
	return name, name != ""
}

// PreemptibilityLabel is on a job and says whether its gang may be preempted, whatever its priority is, and Preemptible is its value for one that may; the object of the gang has
// that in spec.preemptibility.
const (
	PreemptibilityLabel = "kai.scheduler/preemptibility"
	Preemptible         = "preemptible"
)

// OverQuota reports whether the reason of a condition of a PodGroup is that its queue has too little.
func OverQuota(reason string) bool {
	return reason == "NonPreemptibleOverQuota" || reason == "OverLimit"
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
	d.SetTopology(f.Topology(constraint(f.Map("spec", "topologyConstraint")), "spec", "topologyConstraint"), gang.TopologyField)
	groups := f.List("spec", "subGroups")
	if f.FewRoles(len(groups), "spec", "subGroups") {
		d.RoleMin = subGroups(groups)
		rules, err := parts(groups)
		f.Note(err, "spec", "subGroups")
		d.SetTopology(f.Topology(gang.Topology{Parts: rules}, "spec", "subGroups"), gang.TopologyField)
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

// constraint reads a topologyConstraint, of the PodGroup or of one of its subGroups.
func constraint(of map[string]any) (t gang.Topology) {
	t.Required, _ = of["requiredTopologyLevel"].(string)
	if preferred, _ := of["preferredTopologyLevel"].(string); preferred != "" {
		t.Preferred = []string{preferred}
	}
	return t
}

// parts are the rules of those groups that have a constraint. The members of a group with groups in it are those of all of these, however deep. Groups
// without others in them that have the same constraint are the parts of one rule.
func parts(groups []map[string]any) (rules []gang.PartRule, err error) {
	children := map[string][]string{}
	for _, g := range groups {
		name, _ := g["name"].(string)
		parent, _ := g["parent"].(string)
		children[parent] = append(children[parent], name)
	}
	var members [][]string     // by rule: the groups whose members have it
	leaves := map[string]int{} // by constraint: the rule of the groups that have no others in them
	for _, g := range groups {
		name, _ := g["name"].(string)
		of, _ := g["topologyConstraint"].(map[string]any)
		t := constraint(of)
		if name == "" || !t.OfAll() {
			continue
		}
		if len(children[name]) == 0 && !possible(name) {
			continue
		}
		rule, in := gang.PartRule{Required: t.Required, Preferred: t.Preferred}, []string{name}
		if len(children[name]) > 0 {
			in = within(name, children)
		} else if at, known := leaves[t.String()]; known {
			members[at] = append(members[at], name)
			continue
		} else {
			leaves[t.String()], rule.By = len(rules), []string{roleLabel}
		}
		rules, members = append(rules, rule), append(members, in)
		if len(rules) > gang.MaxPartRules {
			return nil, fmt.Errorf("more than %d different topologyConstraints of groups", gang.MaxPartRules)
		}
	}
	for i := range rules {
		requirement, err := labels.NewRequirement(roleLabel, selection.In, members[i])
		if err != nil {
			return nil, fmt.Errorf("names of groups: %.200s", err) // which repeats them
		}
		rules[i].Selector = requirement.String()
	}
	return rules, nil
}

// possible reports whether a label of a pod can name the group.
func possible(name string) bool { return len(content.IsLabelValue(name)) == 0 }

// within is a group and all groups in it that pods can be in, each once, though users may write circles.
func within(name string, children map[string][]string) []string {
	names, known := []string{name}, map[string]bool{name: true}
	for i := 0; i < len(names); i++ {
		for _, child := range children[names[i]] {
			if !known[child] {
				names, known[child] = append(names, child), true
			}
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return !possible(name) })
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
		Schedulers: []string{"kai-scheduler"}, NameOf: NameOf, RoleOf: RoleOf, Decode: Decode, Adopts: true,
	}
}
