package belowmin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/plugins/replacement"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

// take takes the places of those members of a gang that have one: by suspending
// their job, or where they have none that can be, one by one. All are asked first:
// if one cannot be taken, none is. What has begun is finished.
func (c *Controller) take(ctx context.Context, key gang.Key, s *state, t tally) error {
	why := fmt.Sprintf("%d of %d members that gang %s/%s needs have places", len(t.placed), t.need, key.Namespace, key.Name)
	jobs, pods := byJob(t.placed)
	if !s.begun {
		err := c.rehearse(ctx, s, t, jobs, pods)
		var refused *suspend.Refusal
		switch {
		case errors.As(err, &refused), apierrors.IsForbidden(err), apierrors.IsTooManyRequests(err):
			c.giveUp(key, s, err)
			return nil
		case err != nil:
			return err
		}
		s.begun = true
	}
	for _, j := range jobs {
		err := c.Jobs.Suspend(ctx, j, suspend.Order{Reason: ReasonEvicted, Why: why})
		if suspend.Singly(err) {
			pods = append(pods, ofJob(t.placed, j)...)
		} else if err != nil {
			return c.unfinished(key, s, err)
		}
	}
	for _, pod := range pods {
		if err := c.remove(ctx, pod, s.rolls, why); err != nil {
			return c.unfinished(key, s, err)
		}
	}
	c.queue.AddAfter(key, look)
	return nil
}

// byJob are the jobs of pods, each once, and the pods that have none that can be
// suspended.
func byJob(pods []*corev1.Pod) (jobs []suspend.Job, others []*corev1.Pod) {
	seen := map[types.UID]bool{}
	for _, pod := range pods {
		j, ok := suspend.Of(pod)
		switch {
		case !ok:
			others = append(others, pod)
		case !seen[j.UID]:
			seen[j.UID] = true
			jobs = append(jobs, j)
		}
	}
	return jobs, others
}

// ofJob are those of the pods that a job has created.
func ofJob(pods []*corev1.Pod, job suspend.Job) (its []*corev1.Pod) {
	for _, pod := range pods {
		if j, ok := suspend.Of(pod); ok && j.UID == job.UID {
			its = append(its, pod)
		}
	}
	return its
}

// rehearse tells whether all places can be taken, and takes none. The pods are
// those beside the jobs'.
func (c *Controller) rehearse(ctx context.Context, s *state, t tally, jobs []suspend.Job, pods []*corev1.Pod) error {
	for _, j := range jobs {
		err := c.Jobs.Check(ctx, j)
		if suspend.Singly(err) {
			pods = append(pods, ofJob(t.placed, j)...)
		} else if err != nil {
			return err
		}
	}
	if s.rolls { // nobody guards those that are deleted
		return nil
	}
	if err := c.budgeted(ctx, pods); err != nil {
		return err
	}
	for _, pod := range pods {
		if err := c.evict(ctx, pod, metav1.DryRunAll); err != nil {
			return err
		}
	}
	return nil
}

// unfinished says that places are still to be taken, and has it tried again.
func (c *Controller) unfinished(key gang.Key, s *state, err error) error {
	c.tell(key, s, c.Gangs.Pods(key), ReasonFailed, fmt.Sprintf("some of its places are taken, and others cannot be yet: %v", err))
	return err
}

// giveUp leaves a gang as it is until its grace, which grows, has passed again.
func (c *Controller) giveUp(key gang.Key, s *state, err error) {
	c.count.actions.WithLabelValues(actionRefused).Inc()
	hint := ""
	if apierrors.IsForbidden(err) {
		hint = "; the rights are in install/scheduler-policy-rbac.yaml"
	}
	c.tell(key, s, c.Gangs.Pods(key), ReasonFailed, fmt.Sprintf("its places cannot be taken: %v%s", err, hint))
	s.taking, s.begun, s.below = false, false, c.Clock.Now()
	s.spent, _ = c.onTheWay(groupOf(key))
	c.mu.Lock()
	delete(c.leaving, groupOf(key))
	c.mu.Unlock()
	c.queue.AddAfter(key, settle)
}

// remove takes the place of one pod. A gang that was never whole did no work, and
// its pods are deleted as those are that a scheduler preempts. One that ran is
// asked to leave, which a PodDisruptionBudget may refuse.
func (c *Controller) remove(ctx context.Context, pod *corev1.Pod, never bool, why string) error {
	if err := c.mark(ctx, pod, why); err != nil {
		return ignoreGone(err, "mark", pod)
	}
	if never {
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}}
		return ignoreGone(c.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options), "delete", pod)
	}
	return c.evict(ctx, pod)
}

// evict asks a pod to leave, or with a dry run whether it would have to.
func (c *Controller) evict(ctx context.Context, pod *corev1.Pod, dryRun ...string) error {
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}, DryRun: dryRun}
	return ignoreGone(c.Client.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, DeleteOptions: &options,
	}), "evict", pod)
}

// ignoreGone returns an error, unless it says that the pod is not there any more.
func ignoreGone(err error, what string, pod *corev1.Pod) error {
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("%s pod %s/%s: %w", what, pod.Namespace, pod.Name, err)
}

// mark says on a pod why it is deleted, where controllers look for it: this is no
// failure of the pod's.
func (c *Controller) mark(ctx context.Context, pod *corev1.Pod, why string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status": map[string]any{"conditions": []map[string]any{{
			"type": corev1.DisruptionTarget, "status": corev1.ConditionTrue, "reason": replacement.ReasonGiven, "message": why,
			"lastTransitionTime": metav1.NewTime(c.Clock.Now()), "observedGeneration": pod.Generation,
		}}},
	})
	if err != nil {
		return err
	}
	_, err = c.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
