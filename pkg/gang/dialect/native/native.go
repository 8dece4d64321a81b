// Package native reads the gangs of Kubernetes itself: the PodGroup of scheduling.k8s.io (1.36 on). The Workload with embedded groups of 1.35 is not read: later
// releases have no field by which a pod names it.
package native

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Group is the API group of PodGroup and Workload.
const Group = "scheduling.k8s.io"

// The condition that reports whether a group was placed: its name in 1.36 and in 1.37.
const (
	scheduled          = "PodGroupScheduled"
	initiallyScheduled = "PodGroupInitiallyScheduled"
)

// Versions are those in which PodGroups are served, the newest first.
func Versions() []string { return []string{"v1beta1", "v1alpha3", versionOf136} }

const versionOf136 = "v1alpha2"

// Equal reports whether kube-scheduler, of the releases that serve a version, refuses a PodGroup whose priority or preemption policy is not that of all its members.
func Equal(version string) bool { return version != versionOf136 }

// ScheduledCondition is the type of the condition that reports whether a group of an API version was placed.
func ScheduledCondition(version string) string {
	if version == versionOf136 {
		return scheduled
	}
	return initiallyScheduled
}

// NameOf returns the PodGroup that a pod names in spec.schedulingGroup.
func NameOf(pod *corev1.Pod) (string, bool) {
	if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil && *g.PodGroupName != "" {
		return *g.PodGroupName, true
	}
	return "", false
}

// Decode reads a PodGroup. A group with the basic policy is no gang: its minimum is 1.
func Decode(u *unstructured.Unstructured) (gang.Declaration, error) {
	d, err := gang.DecodeGroup(gang.Native, u)
	f := gang.Fields{Object: u, Err: err}
	d.Basic = f.Map("spec", "schedulingPolicy", "basic") != nil
	d.Parent = f.String("spec", "parentCompositePodGroupName")
	d.Together = together(u)
	if f.Map("spec")["priority"] != nil {
		priority := f.Int32("spec", "priority")
		d.Priority = &priority
	}
	d.PreemptionPolicy = corev1.PreemptionPolicy(f.String("spec", "preemptionPolicy"))
	d.MinMember = max(1, f.Int32("spec", "schedulingPolicy", "gang", "minCount"))
	for _, t := range f.List("spec", "schedulingConstraints", "topology") {
		key, _ := t["key"].(string)
		t := f.Topology(gang.Topology{Required: key, Preferred: d.Topology.Preferred}, "spec", "schedulingConstraints", "topology")
		d.SetTopology(t, gang.TopologyField)
	}
	if d.Parent != "" && len(d.Topology.Parts) > 0 { // the engine places the tree, and knows one domain for each part
		d.Topology.Parts = nil
		d.Unapplied = append(d.Unapplied, gang.UnappliedRule{Text: "annotation " + gang.TopologyParts + " of a PodGroup in a CompositePodGroup", Required: true})
	}
	d.Conditions = nil
	for _, name := range []string{scheduled, initiallyScheduled} {
		d.Conditions = append(d.Conditions, f.Conditions(name, "False")...)
	}
	return d, f.Err
}

// together reports whether the pods of a PodGroup are disrupted together. In v1alpha2, which 1.36 serves, the mode is a word; later it is a union.
func together(u *unstructured.Unstructured) bool {
	mode, _, err := unstructured.NestedFieldNoCopy(u.Object, "spec", "disruptionMode")
	union, _ := mode.(map[string]any)
	return err == nil && (mode == "PodGroup" || union["all"] != nil)
}

// Reader reads this dialect.
func Reader() gang.Reader {
	return gang.Reader{
		Dialect:    gang.Native,
		Kinds:      []gang.Served{{GroupKind: schema.GroupKind{Group: Group, Kind: "PodGroup"}, Resource: "podgroups"}},
		Schedulers: []string{corev1.DefaultSchedulerName}, NameOfPod: NameOf, Decode: Decode,
	}
}

// Writer writes this dialect: a PodGroup with the gang policy, and spec.schedulingGroup on pods. API servers drop that field
// where their gate is off, and custom resources where their schema does not know it.
func Writer() gang.Writer {
	w := gang.Writer{Dialect: gang.Native, Object: object, SetGroup: setGroup}
	for _, version := range Versions() {
		w.Versions = append(w.Versions, schema.GroupVersion{Group: Group, Version: version})
	}
	return w
}

func object(d gang.Declaration, version schema.GroupVersion) *unstructured.Unstructured {
	u := gang.NewGroup(gang.Declaration{Key: d.Key}, version)
	spec := map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(d.MinMember)}}}
	// 1.36 has no PriorityClass of the group yet.
	if d.PriorityClass != "" && version.Version != versionOf136 {
		spec["priorityClassName"] = d.PriorityClass
	}
	if d.Topology.Required != "" {
		spec["schedulingConstraints"] = map[string]any{"topology": []any{map[string]any{"key": d.Topology.Required}}}
	}
	u.Object["spec"] = spec
	return u
}

func setGroup(pod *corev1.PodTemplateSpec, d gang.Declaration, _ string) {
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &d.Key.Name}
}
