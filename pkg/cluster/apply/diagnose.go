package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/container"
	"github.com/gangctl/gangctl/pkg/gang"
)

// logLines is how much of the end of a log is shown.
const logLines = 10

// trouble is the reason why a Deployment does not get ready.
type trouble struct {
	// why is one sentence, hint what to do; both may be empty.
	why, hint string
	// log are the last lines of the pod that is in trouble.
	log []string
}

// diagnose reports why the pods of a Deployment do not get ready. What it cannot look at, it reports.
func diagnose(ctx context.Context, client kubernetes.Interface, d *appsv1.Deployment) trouble {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return trouble{why: "its pods cannot be created: " + c.Message, hint: "change what refuses them, which the message names: a quota, pod security or a webhook"}
		}
	}
	selector := metav1.FormatLabelSelector(d.Spec.Selector)
	pods, err := client.CoreV1().Pods(d.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		op := failure.Op{Verb: "list", Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod", Namespace: d.Namespace}
		f := failure.From(op.Wrap(err))
		return trouble{why: f.Message, hint: f.Hint}
	}
	pod := newest(pods.Items)
	if pod == nil {
		return trouble{hint: fmt.Sprintf("see why: kubectl -n %s describe deployment %s", d.Namespace, d.Name)}
	}
	why, hint := podTrouble(pod)
	return trouble{why: fmt.Sprintf("pod %s: %s", pod.Name, why), hint: hint, log: lastLines(ctx, client, pod)}
}

// newest is the pod that was created last of those that are not ready; nil if there are none.
func newest(pods []corev1.Pod) *corev1.Pod {
	unready := slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return podutil.IsPodReady(&p) })
	if len(unready) == 0 {
		return nil
	}
	return new(slices.MaxFunc(unready, func(a, b corev1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	}))
}

// podTrouble reports what keeps a pod from being ready.
func podTrouble(pod *corev1.Pod) (why, hint string) {
	describe := fmt.Sprintf("see more: kubectl -n %s describe pod %s", pod.Namespace, pod.Name)
	if c := gang.Refusal(pod); c != nil {
		return "no node takes it: " + c.Message, describe
	}
	if pod.Spec.NodeName == "" {
		return "no scheduler has bound it", "it waits for the cluster's own scheduler: kubectl -n kube-system get pods"
	}
	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case c.State.Waiting != nil && (c.State.Waiting.Reason == "ErrImagePull" || c.State.Waiting.Reason == "ImagePullBackOff" || c.State.Waiting.Reason == "InvalidImageName"):
			return fmt.Sprintf("%s: %s %s", c.State.Waiting.Reason, c.Image, c.State.Waiting.Message),
				"name an image that the nodes can pull with --image or --registry, and the secret for it with --image-pull-secret"
		case c.LastTerminationState.Terminated != nil && !c.Ready:
			last := c.LastTerminationState.Terminated
			return fmt.Sprintf("container %s ended %d times, the last time with exit code %d (%s)", c.Name, c.RestartCount, last.ExitCode, last.Reason), describe
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			return strings.TrimSpace(c.State.Waiting.Reason + " " + c.State.Waiting.Message), describe
		case !c.Ready && c.State.Running != nil:
			return fmt.Sprintf("container %s runs and is not ready", c.Name), describe
		}
	}
	return "it is " + strings.ToLower(string(pod.Status.Phase)), describe
}

// lastLines are the last lines that the pod's first container logged: in the run that ended, if it was started again.
func lastLines(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) []string {
	if len(pod.Status.ContainerStatuses) == 0 {
		return nil
	}
	status := pod.Status.ContainerStatuses[0]
	if !container.Started(&status) {
		return nil
	}
	tail := int64(logLines)
	options := &corev1.PodLogOptions{Container: status.Name, TailLines: &tail, Previous: status.LastTerminationState.Terminated != nil && status.State.Terminated == nil}
	data, err := client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).DoRaw(ctx)
	if err != nil {
		return []string{fmt.Sprintf("its log cannot be read: %v", err)}
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}
