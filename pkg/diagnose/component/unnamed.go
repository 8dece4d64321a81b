package component

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
)

// maxKey is how much is written of a label or an annotation that tenants wrote, in bytes.
const maxKey = 100

// Carried describes a label or an annotation of pods that looks as if it was meant to name their gang, and does not; "" if they carry none.
func Carried(pods []*corev1.Pod) string {
	readers := dialect.Readers()
	for _, pod := range pods {
		if slices.ContainsFunc(readers, func(r gang.Reader) bool { _, names := r.GroupOf(pod); return names }) {
			continue // another one than it should
		}
		for _, key := range slices.Concat(slices.Sorted(maps.Keys(pod.Labels)), slices.Sorted(maps.Keys(pod.Annotations))) {
			switch meant := dialect.MembershipKeyLike(key); meant {
			case "":
			case key:
				return fmt.Sprintf("the pods carry %s in the wrong place, or empty: as a label where an annotation is read, or the other way round", key)
			default:
				return fmt.Sprintf("the pods carry %s, which no scheduler reads as a gang; did you mean %s?", phrase.Shorten(key, maxKey), meant)
			}
		}
	}
	return ""
}

// HowNamed is how a pod names a group, as its dialect has it.
func HowNamed(d gang.Declaration) string {
	var pod corev1.PodTemplateSpec
	if w, ok := dialect.WriterOf(d.Key.Dialect); ok && w.SetGroup != nil {
		w.SetGroup(&pod, d, "")
	}
	for _, kind := range []struct {
		name string
		all  map[string]string
	}{{"label", pod.Labels}, {"annotation", pod.Annotations}} {
		for _, key := range slices.Sorted(maps.Keys(kind.all)) {
			return fmt.Sprintf("%s %s: %s", kind.name, key, kind.all[key])
		}
	}
	switch {
	case pod.Spec.SchedulingGroup != nil:
		return "field spec.schedulingGroup.podGroupName: " + d.Key.Name
	case d.Key.Dialect == gang.Koordinator:
		return "label pod-group.scheduling.sigs.k8s.io: " + d.Key.Name
	}
	return "as " + stage.DescribeGroup(d)
}
