package component

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
)

// PodsOf are the pods of a DaemonSet. The caller does not change the list.
func PodsOf(v *view.View, d *appsv1.DaemonSet) []*corev1.Pod {
	return selected(v, d.Namespace, d.Spec.Selector)
}

// PodsOn are the pods of a DaemonSet on a node.
func PodsOn(v *view.View, d *appsv1.DaemonSet, node string) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(PodsOf(v, d)), func(p *corev1.Pod) bool { return p.Spec.NodeName != node })
}

// Sidecar reports whether an init container is one that runs alongside the others.
func Sidecar(pod *corev1.Pod, index int) bool {
	return index < len(pod.Spec.InitContainers) && podutil.IsRestartableInitContainer(&pod.Spec.InitContainers[index])
}

// awaited is the init container that the other containers of a pod wait for; nil if they wait for none.
func awaited(pod *corev1.Pod) *corev1.ContainerStatus {
	for i, s := range pod.Status.InitContainerStatuses {
		up := Sidecar(pod, i) && s.State.Running != nil
		if !up && (s.State.Terminated == nil || s.State.Terminated.ExitCode != 0) {
			return &pod.Status.InitContainerStatuses[i]
		}
	}
	return nil
}

// WaitingReasons are what some pods suffer from: one line for each reason.
func WaitingReasons(pods []*corev1.Pod) []string {
	reasons := map[string]int{}
	for _, pod := range pods {
		if s := awaited(pod); s != nil {
			state := "has not ended"
			if s.State.Waiting != nil {
				state = s.State.Waiting.Reason
			}
			reasons["init container "+s.Name+" "+state]++
			continue
		}
		for _, s := range pod.Status.ContainerStatuses {
			if s.State.Waiting != nil {
				reasons[s.State.Waiting.Reason]++
			}
		}
	}
	var lines []string
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		lines = append(lines, fmt.Sprintf("%s of it: %s", phrase.Count(reasons[reason], "pod"), reason))
	}
	return lines
}

// Log is the command that shows the log of what makes pods, a deployment or a daemonset: of the init container that they wait for, if they do, and of the run before, if a container of each of them was
// restarted. kubectl chooses one of the pods, and fails where that has no such run.
func Log(v *view.View, resource string, o metav1.Object, selector *metav1.LabelSelector) string {
	args, pods := []string{"logs", resource + "/" + o.GetName()}, selected(v, o.GetNamespace(), selector)
	suspect := ""
	for _, pod := range pods {
		if name, _ := troubled(pod); name != "" {
			suspect = name
			break
		}
	}
	previous := suspect != "" && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
		name, restarted := troubled(p)
		return name != suspect || !restarted
	})
	if suspect != "" && len(pods[0].Spec.InitContainers)+len(pods[0].Spec.Containers) > 1 {
		args = append(args, "-c", suspect)
	}
	if previous {
		args = append(args, "--previous")
	}
	return command.Kubectl(o.GetNamespace(), append(args, "--tail=50")...)
}

// PodLog is the command that shows the log of one pod, as [Log] does.
func PodLog(pod *corev1.Pod) string {
	args := []string{"logs", pod.Name}
	name, restarted := troubled(pod)
	if name != "" && len(pod.Spec.InitContainers)+len(pod.Spec.Containers) > 1 {
		args = append(args, "-c", name)
	}
	if restarted {
		args = append(args, "--previous")
	}
	return command.Kubectl(pod.Namespace, append(args, "--tail=50")...)
}

// troubled is the container of a pod whose log shows more: the init container that the others wait for, or the first that is not up or was restarted; restarted reports that it has an earlier run.
func troubled(pod *corev1.Pod) (name string, restarted bool) {
	if s := awaited(pod); s != nil {
		return s.Name, s.RestartCount > 0
	}
	for _, s := range pod.Status.ContainerStatuses {
		if s.RestartCount > 0 || s.State.Waiting != nil {
			return s.Name, s.RestartCount > 0
		}
	}
	return "", false
}
