package component

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
)

// OnNodes is how a DaemonSet is on some nodes.
type OnNodes struct {
	// Broken are its pods there, or for there, that do not run as they should; Absent are the nodes for which it has no pod.
	Broken []*corev1.Pod
	Absent []string
	// Works reports that on some of them one runs as it should.
	Works bool
}

// On looks at the pods of a DaemonSet on some nodes.
func On(v *view.View, d *appsv1.DaemonSet, nodes ...string) (found OnNodes) {
	type podsByNode struct{ d *appsv1.DaemonSet }
	pods := view.Once(v, podsByNode{d}, func() map[string][]*corev1.Pod {
		all := map[string][]*corev1.Pod{}
		for _, p := range PodsOf(v, d) {
			all[destination(p)] = append(all[destination(p)], p)
		}
		return all
	})
	for _, node := range nodes {
		if len(pods[node]) == 0 {
			found.Absent = append(found.Absent, node)
		}
		live := slices.DeleteFunc(slices.Clone(pods[node]), podutil.IsPodTerminal)
		if len(live) == 0 {
			live = pods[node]
		}
		broken := Broken(live)
		found.Broken, found.Works = append(found.Broken, broken...), found.Works || len(broken) < len(live)
	}
	return found
}

// destination is the node of a pod of a DaemonSet, or the one that it is made for, which its controller names in its node affinity.
func destination(p *corev1.Pod) string {
	if a := p.Spec.Affinity; p.Spec.NodeName == "" && a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, field := range term.MatchFields {
				if field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
					return field.Values[0]
				}
			}
		}
	}
	return p.Spec.NodeName
}

// Broken are those of some pods that do not run as they should.
func Broken(pods []*corev1.Pod) (broken []*corev1.Pod) {
	for _, p := range pods {
		if state(p) != "" {
			broken = append(broken, p)
		}
	}
	return broken
}

// state is what keeps a pod from running as it should, in a word or two; "" if nothing does.
func state(pod *corev1.Pod) string {
	switch {
	case pod.Status.Phase == corev1.PodFailed:
		return cmp.Or(pod.Status.Reason, string(pod.Status.Phase))
	case len(pod.Status.InitContainerStatuses)+len(pod.Status.ContainerStatuses) == 0 && pod.Status.Phase == corev1.PodPending:
		return string(pod.Status.Phase)
	}
	if s := awaited(pod); s != nil {
		if s.State.Waiting != nil {
			return "init container " + s.Name + " " + s.State.Waiting.Reason
		}
		return "init container " + s.Name + " has not ended"
	}
	for _, s := range pod.Status.ContainerStatuses {
		switch {
		case s.State.Waiting != nil:
			return s.State.Waiting.Reason
		case s.State.Terminated != nil:
			return phrase.Ending(s.State.Terminated)
		}
	}
	if _, ready := podutil.GetPodCondition(&pod.Status, corev1.PodReady); ready != nil && ready.Status == corev1.ConditionFalse {
		return "not ready"
	}
	return ""
}

// maxMessage is how much is repeated of what a container or the scheduler wrote, in bytes.
const maxMessage = 300

// problem is what a pod that is broken suffers from, with its restarts and how it ended before.
func problem(pod *corev1.Pod) string {
	text := state(pod)
	if _, c := podutil.GetPodCondition(&pod.Status, corev1.PodScheduled); pod.Spec.NodeName == "" && c != nil && c.Message != "" {
		return text + ": " + phrase.Shorten(phrase.Plain(c.Message), maxMessage)
	}
	s := suspect(pod)
	if s == nil {
		return text
	}
	text += ", " + phrase.Count(s.RestartCount, "restart")
	if t := s.LastTerminationState.Terminated; t != nil {
		text += fmt.Sprintf("; last exit code %d: %s", t.ExitCode, phrase.Shorten(phrase.Plain(cmp.Or(t.Message, t.Reason)), maxMessage))
	}
	return text
}

// Troubles are what broken pods of a DaemonSet suffer from: a line for each pod, or, for a reader who may not see them, as messages are theirs, for each reason.
func Troubles(c *stage.Context, broken []*corev1.Pod) (lines []string) {
	for _, p := range broken {
		if !c.Reader.Sees(p.Namespace) {
			return WaitingReasons(broken)
		}
		lines = append(lines, fmt.Sprintf("pod %s on %s: %s", p.Name, destination(p), problem(p)))
	}
	return lines
}

// WaitingReasons are what some pods suffer from: one line for each reason.
func WaitingReasons(pods []*corev1.Pod) []string {
	reasons := map[string]int{}
	for _, pod := range pods {
		if why := state(pod); why != "" {
			reasons[why]++
		}
	}
	var lines []string
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		lines = append(lines, fmt.Sprintf("%s of it: %s", phrase.Count(reasons[reason], "pod"), reason))
	}
	return lines
}

// Look is the command that shows more of a broken pod: its log, or the pod itself where no container has begun.
func Look(pod *corev1.Pod) string {
	s := suspect(pod)
	if s == nil || s.RestartCount == 0 && s.State.Waiting != nil {
		return command.Kubectl(pod.Namespace, "describe", "pod", pod.Name)
	}
	return PodLog(pod)
}
