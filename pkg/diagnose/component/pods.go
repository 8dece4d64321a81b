package component

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
)

// PodsOf are the pods of a DaemonSet. The caller does not change the list.
func PodsOf(v *view.View, d *appsv1.DaemonSet) []*corev1.Pod {
	return selected(v, d.Namespace, d.Spec.Selector)
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

// troubled is the container of a pod whose log shows more, as [suspect] finds it; restarted reports that it has an earlier run.
func troubled(pod *corev1.Pod) (name string, restarted bool) {
	if s := suspect(pod); s != nil {
		return s.Name, s.RestartCount > 0
	}
	return "", false
}

// suspect is the container of a pod that it is broken by: the init container that the others wait for, the first that is not up, or the first that was restarted; nil without one.
func suspect(pod *corev1.Pod) *corev1.ContainerStatus {
	if s := awaited(pod); s != nil {
		return s
	}
	for _, worse := range []func(corev1.ContainerStatus) bool{
		func(s corev1.ContainerStatus) bool { return s.State.Waiting != nil || s.State.Terminated != nil },
		func(s corev1.ContainerStatus) bool { return s.RestartCount > 0 },
	} {
		if i := slices.IndexFunc(pod.Status.ContainerStatuses, worse); i >= 0 {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}
