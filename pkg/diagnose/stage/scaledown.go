package stage

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/gang"
)

// ScaleDown is which pods of a service go when it is scaled down, as far as its controller lets know.
type ScaleDown struct {
	// Pods are those of the service. Where Ordered, as of a StatefulSet, the first of them go first. Else so many First go before the others, as they are not ready, and then those
	// that are marked.
	Pods    []*corev1.Pod
	First   int
	Ordered bool
}

// ScaleDownOf is how a service of several pods is scaled down in part; ok is false where that is not known, as while a Deployment is rolled out.
func ScaleDownOf(h *view.Consumer) (d ScaleDown, ok bool) {
	if h.Job != nil || h.Group != appsv1.GroupName || h.Kind == "DaemonSet" {
		return d, false
	}
	d.Pods = slices.DeleteFunc(slices.Clone(h.Pods), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	if len(d.Pods) < 2 {
		return d, false
	}
	if d.Ordered = h.Kind == "StatefulSet"; d.Ordered {
		slices.SortStableFunc(d.Pods, func(a, b *corev1.Pod) int { return cmp.Compare(ordinal(b), ordinal(a)) })
		return d, ordinal(d.Pods[len(d.Pods)-1]) == 0 && ordinal(d.Pods[0]) == len(d.Pods)-1 // with all that is known, it counts from 0, and has no gap
	}
	maker, _ := gang.ControllerOf(d.Pods[0])
	for _, p := range d.Pods {
		if other, controlled := gang.ControllerOf(p); !controlled || other != maker {
			return d, false
		}
		if unready(p) {
			d.First++
		}
	}
	d.Pods = FirstThose(d.Pods, unready)
	return d, true
}

// FirstThose has some of all first, and the others behind them, each in their order.
func FirstThose[T any](all []T, some func(T) bool) []T {
	others := slices.DeleteFunc(slices.Clone(all), some)
	return append(slices.DeleteFunc(slices.Clone(all), func(x T) bool { return !some(x) }), others...)
}

// ordinal is the number of a pod of a StatefulSet; -1 for a name without one.
func ordinal(p *corev1.Pod) int {
	n, err := strconv.Atoi(p.Name[strings.LastIndex(p.Name, "-")+1:])
	if err != nil {
		return -1
	}
	return n
}

// unready reports whether a pod is known not to be ready: its ReplicaSet deletes it before those that are.
func unready(p *corev1.Pod) bool {
	return p.Status.Phase != corev1.PodRunning || slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue
	})
}

// scaleDownInPart has a service run fewer pods: those of a part go. The deletion cost names them to a ReplicaSet, where it is not the same whichever go.
func scaleDownInPart(part *view.Consumer, resource string) GiveWay {
	d, _ := ScaleDownOf(part.Whole)
	left, mark := len(d.Pods)-len(part.Pods), ""
	switch {
	case d.Ordered:
		left = ordinal(part.Pods[len(part.Pods)-1])
	case !part.AnyOf:
		cost := 0
		for _, p := range d.Pods {
			if n, err := strconv.Atoi(p.Annotations[corev1.PodDeletionCost]); err == nil {
				cost = min(cost, n)
			}
		}
		args := []string{"annotate", "--overwrite", "pod"}
		for _, p := range part.Pods {
			args = append(args, p.Name)
		}
		mark = command.Kubectl(part.Namespace, append(args, fmt.Sprintf("%s=%d", corev1.PodDeletionCost, cost-1))...)
	}
	scale := command.Kubectl(part.Namespace, "scale", resource+"/"+part.Name, fmt.Sprintf("--replicas=%d", left))
	return GiveWay{Verb: "scale down", Command: command.Then(mark, scale), Cost: fmt.Sprintf("serves with %d instead of %d pods until it is scaled up again, as its HorizontalPodAutoscaler would, if it has one", left, len(d.Pods)), Replicas: left}
}
