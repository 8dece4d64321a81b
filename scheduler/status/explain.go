package status

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/outcome"
)

// maxBare is how long members may be without a PodScheduled condition because others
// are still being created, or get theirs from the engine.
const maxBare = 10 * time.Second

// bareMembers are the members of a gang without a PodScheduled condition: since when
// there are as many, and since when there are any.
type bareMembers struct {
	count        int
	since, first time.Time
}

// reportAmbiguous reports once what a gang's declaration leaves open.
func (c *Controller) reportAmbiguous(key gang.Key, members []*corev1.Pod) {
	text := c.Gangs.Ambiguous(key)
	if text == "" || len(members) == 0 {
		delete(c.ambiguous, key)
		return
	}
	c.notify(c.ambiguous, key, members, ReasonAmbiguous, text)
}

// reportNotBound reports why a member is refused the node that was found for it. The engine has reported that the gang has its nodes, and sets the condition of that pod
// alone; the others wait for it.
func (c *Controller) reportNotBound(key gang.Key, members []*corev1.Pod) {
	if group, ok := c.VirtualGroup(key.Namespace, key.VirtualName()); ok && apimeta.IsStatusConditionTrue(group.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled) {
		for _, pod := range members {
			if refusal := gang.Refusal(pod); gang.AwaitsNode(pod) && refusal != nil && refusal.Reason == corev1.PodReasonSchedulerError {
				c.notify(c.notBound, key, members, ReasonNotBound, fmt.Sprintf("pod %s could not be bound: %s", pod.Name, refusal.Message))
				return
			}
		}
	}
	delete(c.notBound, key)
}

// explainWait explains a gang that has been incomplete for longer than patience, by
// an event and by the conditions of its members.
func (c *Controller) explainWait(ctx context.Context, key gang.Key, members []*corev1.Pod) error {
	var unbound []*corev1.Pod
	for _, pod := range members {
		if gang.AwaitsNode(pod) {
			unbound = append(unbound, pod)
		}
	}
	lack := c.Gangs.Lack(key)
	text := lack.Text
	c.activate(key, lack, unbound)
	if len(members) == 0 {
		c.dropLimiter(key)
		delete(c.bare, key)
	}
	if text == "" || len(unbound) == 0 {
		delete(c.incomplete, key)
		others, err := c.explainUnclaimed(ctx, key, unbound)
		if err != nil {
			return err
		}
		return c.explainLate(ctx, key, others)
	}
	explained := unbound
	if !c.notify(c.incomplete, key, unbound, ReasonWaiting, text) {
		explained = c.takeBare(key, unbound)
	}
	if p := c.incomplete[key]; p.text == text { // else it is still to be reported, and an older one stands
		p.lack = lack
		c.incomplete[key] = p
	}
	for _, pod := range explained {
		if err := c.patchCondition(ctx, pod, ReasonWaiting, text); err != nil {
			return fmt.Errorf("explain pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

// activate has a gang tried that waits for claims no more. The engine looks at it again when the claim comes, and not when the member goes.
func (c *Controller) activate(key gang.Key, lack gangcache.Lack, unbound []*corev1.Pod) {
	switch {
	case lack.Code == answer.DRAUnallocatable:
		c.unclaimed[key] = true
	case c.unclaimed[key]:
		delete(c.unclaimed, key)
		if len(unbound) > 0 {
			c.Activate(unbound[0])
		}
	}
}

// explainUnclaimed explains to members that claim what does not exist why they do not start with the others, which are enough without them. The engine does not try them,
// and reports nothing. It returns the others. The claims of a pod are made after the pod.
func (c *Controller) explainUnclaimed(ctx context.Context, key gang.Key, unbound []*corev1.Pod) (others []*corev1.Pod, err error) {
	for _, pod := range unbound {
		why := c.Gangs.MissingClaim(pod)
		if why == "" {
			others = append(others, pod)
			continue
		}
		if left := patience - c.Clock.Since(pod.CreationTimestamp.Time); left > 0 {
			c.queue.AddAfter(key, left)
			continue
		}
		if err := c.patchCondition(ctx, pod, ReasonWaiting, "pod waits for its claims: "+why); err != nil {
			return nil, fmt.Errorf("explain pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return others, nil
}

// explainLate explains a gang that was tried and waits to members that were created
// afterwards. The engine would do so when it tries the gang again, which may take a
// while.
func (c *Controller) explainLate(ctx context.Context, key gang.Key, unbound []*corev1.Pod) error {
	reason, waits := c.LastReported(key.VirtualGroup())
	if !waits {
		delete(c.bare, key)
		return nil
	}
	for _, pod := range c.takeBare(key, unbound) {
		if err := c.patchCondition(ctx, pod, corev1.PodReasonUnschedulable, reason.Unscheduled()); err != nil {
			return fmt.Errorf("explain pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

// takeBare returns the members without a PodScheduled condition, when their number
// has been the same for a while, so that no other writer will set it. While it
// grows, a controller is creating the gang, and a condition would soon be wrong;
// while it shrinks, the engine, which has tried the gang, is writing the conditions
// one after the other.
func (c *Controller) takeBare(key gang.Key, members []*corev1.Pod) []*corev1.Pod {
	var bare []*corev1.Pod
	for _, pod := range members {
		if _, condition := podutil.GetPodCondition(&pod.Status, corev1.PodScheduled); condition == nil {
			bare = append(bare, pod)
		}
	}
	if len(bare) == 0 {
		delete(c.bare, key)
		return nil
	}
	now, b := c.Clock.Now(), c.bare[key]
	if b.count == 0 {
		b.first = now
	}
	if b.count != len(bare) {
		b.count, b.since = len(bare), now
		c.bare[key] = b
	}
	if left := min(b.since.Add(patience).Sub(now), b.first.Add(maxBare).Sub(now)); left > 0 {
		c.queue.AddAfter(key, left)
		return nil
	}
	delete(c.bare, key)
	return bare
}

// patchCondition sets the PodScheduled condition of a pod, unless it is there.
func (c *Controller) patchCondition(ctx context.Context, pod *corev1.Pod, reason, message string) error {
	message = phrase.Plain(message)
	_, old := podutil.GetPodCondition(&pod.Status, corev1.PodScheduled)
	if old != nil && old.Status == corev1.ConditionFalse && old.Reason == reason && old.Message == message {
		return nil
	}
	status := pod.Status.DeepCopy()
	podutil.UpdatePodCondition(status, &corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message,
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
	if apierrors.IsNotFound(err) || outcome.Replaced(err) {
		return nil // deleted, or another pod of that name: its own event will come
	}
	return err
}
