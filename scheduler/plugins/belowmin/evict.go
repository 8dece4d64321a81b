package belowmin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/cluster/paging"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/scheduler/outcome"
	"github.com/gangctl/gangctl/scheduler/plugins/replacement"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

// confirmed reports whether what the informers have of a gang holds by the API server,
// too: that members have no node, or one that is gone. After an outage of the API server the
// informers are late: the gang may be whole by now, and must not be evicted then. The informer
// of pods may be behind that of nodes: a member whose node is gone may be deleted already, and replaced.
// Tenants choose how many members wait: no more of them are read than it takes for the gang not to be whole, and many are not read one by one.
func (c *Controller) confirmed(ctx context.Context, m members) (bool, error) {
	for _, name := range m.lostNodes() {
		_, err := c.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			return false, nil
		case !apierrors.IsNotFound(err):
			return false, fmt.Errorf("look at node %s: %w", name, err)
		}
	}
	singly, waiting := m.lost, m.waiting[:min(len(m.waiting), max(1, len(m.placed)+len(m.waiting)-m.required+1))]
	if len(waiting) > readSingly {
		if still, err := c.stillWait(ctx, waiting); !still || err != nil {
			return false, err
		}
	} else {
		singly = slices.Concat(singly, waiting)
	}
	for _, pod := range singly {
		if same, err := c.unchanged(ctx, pod); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// readSingly is how many waiting members are read one by one; more are listed.
const readSingly = 20

// stillWait reports whether pods of a namespace have no node by the API server, either, and are not being deleted. It lists those that wait there, in pages.
func (c *Controller) stillWait(ctx context.Context, waiting []*corev1.Pod) (bool, error) {
	namespace, left := waiting[0].Namespace, make(map[types.UID]bool, len(waiting))
	noNode := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", "").String()}
	err := paging.Each(ctx, noNode, c.Client.CoreV1().Pods(namespace).List, func() {
		for _, pod := range waiting {
			left[pod.UID] = true
		}
	}, func(page *corev1.PodList) {
		for i := range page.Items {
			if pod := &page.Items[i]; pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil {
				delete(left, pod.UID)
			}
		}
	})
	if err != nil {
		return false, fmt.Errorf("list the pods without a node in namespace %s: %w", namespace, err)
	}
	return len(left) == 0, nil
}

// unchanged reports whether a pod is, by the API server, where the informer has it: it exists, and is
// not being deleted.
func (c *Controller) unchanged(ctx context.Context, pod *corev1.Pod) (bool, error) {
	now, err := c.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look at pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return now.UID == pod.UID && now.Spec.NodeName == pod.Spec.NodeName && now.DeletionTimestamp == nil, nil
}

// evictAll evicts the members of a gang that have a node: by suspending their job, or
// where they have none that can be suspended, one by one. A dry run of all comes first:
// if one cannot be evicted, none is. What has begun is finished.
func (c *Controller) evictAll(ctx context.Context, o observation) error {
	s, m := o.state, o.members
	why := fmt.Sprintf("%d of %d members that gang %s/%s needs have places", m.onExistingNodes(), m.required, o.key.Namespace, o.key.Name)
	jobs, pods := byJob(m.placed)
	if !s.begun {
		err := c.rehearse(ctx, o, jobs, pods, why)
		switch {
		case refused(err):
			c.giveUp(o, err)
			return nil
		case err != nil:
			return err
		}
		s.begun = true
	}
	for _, j := range jobs {
		err := c.Jobs.Suspend(ctx, j, suspend.Order{Reason: ReasonEvicted, Why: why})
		if suspend.Singly(err) {
			pods = append(pods, ofJob(m.placed, j)...)
		} else if err != nil {
			return c.unfinished(o, err)
		}
	}
	for _, pod := range pods {
		if err := c.remove(ctx, pod, s.rollback, why); err != nil {
			return c.unfinished(o, err)
		}
	}
	c.queue.AddAfter(o.key, pollInterval)
	return nil
}

// refused reports whether the API server, or the rules of a job, answered that something is not to be done: it is no use to request it again soon. A conflict
// is with another client's change.
func refused(err error) bool {
	var refusal *suspend.Refusal
	return errors.As(err, &refusal) || outcome.Refused(err) && !apierrors.IsConflict(err)
}

// byJob returns the jobs of pods, each once, and the pods that have none that can be
// suspended.
func byJob(pods []*corev1.Pod) (jobs []suspend.Target, others []*corev1.Pod) {
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

// ofJob returns those of the pods that a job has created.
func ofJob(pods []*corev1.Pod, job suspend.Target) (its []*corev1.Pod) {
	for _, pod := range pods {
		if j, ok := suspend.Of(pod); ok && j.UID == job.UID {
			its = append(its, pod)
		}
	}
	return its
}

// rehearse returns why not all members can be evicted, and evicts none. The pods are
// those that have no job. Budgets guard no pods that are deleted.
func (c *Controller) rehearse(ctx context.Context, o observation, jobs []suspend.Target, pods []*corev1.Pod, why string) error {
	for _, j := range jobs {
		err := c.Jobs.Check(ctx, j)
		if suspend.Singly(err) {
			pods = append(pods, ofJob(o.members.placed, j)...)
		} else if err != nil {
			return err
		}
	}
	if !o.state.rollback {
		if err := c.checkBudgets(ctx, pods); err != nil {
			return err
		}
	}
	for _, pod := range pods {
		if err := c.remove(ctx, pod, o.state.rollback, why, metav1.DryRunAll); err != nil && !outcome.Untried(err) {
			return err
		}
	}
	return nil
}

// unfinished reports that members are still to be evicted, and has it tried again.
func (c *Controller) unfinished(o observation, err error) error {
	c.report(o, ReasonFailed, fmt.Sprintf("some of its places are taken, and others cannot be yet: %v", err))
	return err
}

// giveUp leaves a gang as it is until its grace, which grows, has passed again.
func (c *Controller) giveUp(o observation, err error) {
	s, group := o.state, o.key.VirtualGroup()
	c.actions.WithLabelValues(actionRefused).Inc()
	hint := ""
	if apierrors.IsForbidden(err) {
		hint = "; the rights are in install/scheduler-policy-rbac.yaml"
	}
	c.report(o, ReasonFailed, fmt.Sprintf("its places cannot be taken: %v%s", err, hint))
	s.evicting, s.begun, s.refused, s.below = false, false, true, c.Clock.Now()
	s.spent, _ = c.inFlightTime(group)
	c.mu.Lock()
	delete(c.evicting, group)
	c.mu.Unlock()
	c.queue.AddAfter(o.key, debounce)
}

// remove deletes or evicts one pod. A gang that was never whole did no work, and its
// pods are deleted like those that a scheduler preempts. One that ran is evicted,
// which a PodDisruptionBudget may refuse. A dry run checks that it can be.
func (c *Controller) remove(ctx context.Context, pod *corev1.Pod, rollback bool, why string, dryRun ...string) error {
	if err := c.setDisruptionTarget(ctx, pod, why, dryRun...); err != nil && !outcome.Untried(err) {
		return ignoreGone(err, "set the condition of", pod)
	}
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}, DryRun: dryRun}
	if rollback {
		return ignoreGone(c.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options), "delete", pod)
	}
	return ignoreGone(c.Client.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, DeleteOptions: &options,
	}), "evict", pod)
}

// ignoreGone returns an error, unless it means that the pod does not exist any more; another may have its name.
func ignoreGone(err error, what string, pod *corev1.Pod) error {
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || outcome.Replaced(err) {
		return nil
	}
	return fmt.Errorf("%s pod %s/%s: %w", what, pod.Namespace, pod.Name, err)
}

// setDisruptionTarget sets the condition by which controllers distinguish an eviction from a
// failure of the pod.
func (c *Controller) setDisruptionTarget(ctx context.Context, pod *corev1.Pod, why string, dryRun ...string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status": map[string]any{"conditions": []map[string]any{{
			"type": corev1.DisruptionTarget, "status": corev1.ConditionTrue, "reason": replacement.ReasonGiven, "message": phrase.Plain(why),
			"lastTransitionTime": metav1.NewTime(c.Clock.Now()), "observedGeneration": pod.Generation,
		}}},
	})
	if err != nil {
		return err
	}
	_, err = c.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{DryRun: dryRun}, "status")
	return err
}

// checkBudgets returns an error unless the PodDisruptionBudgets allow the eviction of
// all of these pods. A dry run checks each alone, and a budget for three allows every
// one of eight.
func (c *Controller) checkBudgets(ctx context.Context, pods []*corev1.Pod) error {
	if len(pods) == 0 {
		return nil
	}
	namespace := pods[0].Namespace
	list, err := c.Client.PolicyV1().PodDisruptionBudgets(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("list PodDisruptionBudgets in namespace %s: %w", namespace, err)
	}
	for i := range list.Items {
		budget := &list.Items[i]
		if n := guarded(budget, pods); n > budget.Status.DisruptionsAllowed {
			return apierrors.NewTooManyRequests(fmt.Sprintf("PodDisruptionBudget %s/%s allows %d of %d evictions",
				namespace, budget.Name, budget.Status.DisruptionsAllowed, n), 0)
		}
	}
	return nil
}

// guarded returns the number of pods that count against a budget when they are
// evicted: those that are ready. The dry run checks the others one by one.
func guarded(budget *policyv1.PodDisruptionBudget, pods []*corev1.Pod) (n int32) {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		return 0 // the API server does not understand it, either
	}
	for _, pod := range pods {
		if selector.Matches(labels.Set(pod.Labels)) && podutil.IsPodReady(pod) {
			n++
		}
	}
	return n
}
