package native

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Writer writes this dialect: a PodGroup with the gang policy, and spec.schedulingGroup on pods. API servers drop that field
// where their gate is off, and custom resources where their schema does not know it.
func Writer() gang.Writer {
	w := gang.Writer{Dialect: gang.Native, Object: object, Mark: mark}
	for _, version := range Versions() {
		w.Versions = append(w.Versions, schema.GroupVersion{Group: Group, Version: version})
	}
	return w
}

func object(d gang.Declaration, version schema.GroupVersion) *unstructured.Unstructured {
	u := gang.NewGroup(gang.Declaration{Key: d.Key}, version)
	spec := map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(d.MinMember)}}}
	// In 1.36 the class of the group is not yet known.
	if d.PriorityClass != "" && version.Version != versionOf136 {
		spec["priorityClassName"] = d.PriorityClass
	}
	if d.TopologyKey != "" {
		spec["schedulingConstraints"] = map[string]any{"topology": []any{map[string]any{"key": d.TopologyKey}}}
	}
	u.Object["spec"] = spec
	return u
}

func mark(pod *corev1.PodTemplateSpec, d gang.Declaration, _ string) {
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &d.Key.Name}
}
