package status

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	spv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

// patchPodGroup writes the counts and the phase of a PodGroup, if they changed.
func (c *Controller) patchPodGroup(ctx context.Context, key gang.Key, members []*corev1.Pod) error {
	u, ok := c.Objects.Get(key.Namespace, key.Name)
	if !ok {
		delete(c.ours, key)
		return nil
	}
	if len(members) == 0 && !c.ours[key] {
		// A group that none of our pods was ever a member of is another scheduler's.
		return nil
	}
	c.ours[key] = true
	group, err := schedulerplugins.Decode(u)
	if err != nil {
		return err
	}
	if len(members) == 0 && terminal(group.Status.Phase) {
		return nil // it ended, and its pods were cleaned up
	}
	status := schedulerplugins.Status(group, schedulerplugins.CountPods(members))
	if equality.Semantic.DeepEqual(status, group.Status) {
		return nil
	}
	// The counts are named even where they are zero: a merge patch keeps what
	// it does not name.
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"phase": status.Phase, "running": status.Running, "succeeded": status.Succeeded, "failed": status.Failed,
	}})
	if err != nil {
		return fmt.Errorf("patch status of PodGroup %s/%s: %w", key.Namespace, key.Name, err)
	}
	_, err = c.Dynamic.Resource(schedulerplugins.GVR()).Namespace(key.Namespace).
		Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("patch status of PodGroup %s/%s: %w", key.Namespace, key.Name, err)
	}
	return nil
}

func terminal(phase spv1alpha1.PodGroupPhase) bool {
	return phase == spv1alpha1.PodGroupFinished || phase == spv1alpha1.PodGroupFailed
}

// patchCondition says on a pod why its gang cannot be tried. A pod that says
// so already is left alone.
func (c *Controller) patchCondition(ctx context.Context, pod *corev1.Pod, reason string) error {
	_, said := podutil.GetPodCondition(&pod.Status, corev1.PodScheduled)
	if said != nil && said.Status == corev1.ConditionFalse && said.Reason == ReasonWaiting && said.Message == reason {
		return nil
	}
	status := pod.Status.DeepCopy()
	podutil.UpdatePodCondition(status, &corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: ReasonWaiting, Message: reason,
		ObservedGeneration: pod.Generation,
	})
	_, condition := podutil.GetPodCondition(status, corev1.PodScheduled)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status":   map[string]any{"conditions": []corev1.PodCondition{*condition}},
	})
	if err != nil {
		return err
	}
	_, err = c.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // deleted, or another pod of that name: its own event will come
	}
	return err
}

// Decided reports what the engine decided of a gang, as an event on the gang's
// object. A dialect without one has the same words on its pods.
func (c *Controller) Decided(group *schedulingv1beta1.PodGroup) {
	key, err := gang.ParseVirtualName(group.Namespace, group.Name)
	if err != nil {
		return
	}
	object, ok := c.object(key)
	condition := apimeta.FindStatusCondition(group.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
	switch {
	case !ok || condition == nil:
	case condition.Status == metav1.ConditionTrue:
		c.Recorder.Eventf(object, nil, corev1.EventTypeNormal, ReasonScheduled, "Scheduling", "found a node for every member that the gang needs")
	default:
		c.Recorder.Eventf(object, nil, corev1.EventTypeWarning, condition.Reason, "Scheduling", "%s", condition.Message)
	}
}

// object refers to the API object of a gang; ok is false where there is none.
func (c *Controller) object(key gang.Key) (ref *corev1.ObjectReference, ok bool) {
	if key.Dialect != gang.SchedulerPlugins {
		return nil, false
	}
	u, ok := c.Objects.Get(key.Namespace, key.Name)
	if !ok {
		return nil, false
	}
	gvk := schedulerplugins.GVK()
	return &corev1.ObjectReference{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind,
		Namespace: key.Namespace, Name: key.Name, UID: u.GetUID(),
	}, true
}
