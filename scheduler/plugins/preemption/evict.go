package preemption

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/outcome"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

const (
	// ReasonPreempted is the reason of the event on a victim.
	ReasonPreempted = "Preempted"
	// ReasonNotPreempted is the reason of the event on a preemptor that a victim cannot be evicted.
	ReasonNotPreempted = "NotPreempted"
	// ReasonJobPreempted is the reason of the event on a job that is suspended.
	ReasonJobPreempted = "GangPreempted"
	// atOnce is how many pods are evicted at a time.
	atOnce = 16
)

// patience is how often a request is repeated that the API could not answer.
func patience() wait.Backoff {
	return wait.Backoff{Steps: 4, Duration: 100 * time.Millisecond, Factor: 4, Jitter: 0.1}
}

// execute evicts the victims of a reservation. All jobs are checked first whether they can
// be suspended, and all other pods whether they can be deleted: if one cannot, no victim has to go, and others are chosen. That takes as long as the API takes: who
// does not need the room any more by then evicts no pod.
func (p *Preemptor) execute(ctx context.Context, r *reservation) {
	suspended, ok := p.checkJobs(ctx, r)
	var pods []*corev1.Pod // that go one by one
	for _, pod := range podsOf(r.units) {
		if job, owned := suspend.Of(pod); !owned || !suspended[job.Identity()] {
			pods = append(pods, pod)
		}
	}
	if ok = ok && p.checkPods(ctx, r, pods); ok {
		p.awaitNominations(ctx, r)
	}
	if !ok || !p.begins(r) || !p.suspendJobs(ctx, r, suspended) {
		return
	}
	if left := p.keptBack(r); left != nil {
		pods = left
	}
	p.evictAll(ctx, r, pods, suspended)
}

// keptBack are the victims that are to be deleted though their jobs are suspended; nil as long as these have time.
func (p *Preemptor) keptBack(r *reservation) []*corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !r.insists {
		return nil
	}
	return p.left(r)
}

// checkJobs finds the jobs of the victims that can be suspended; ok is false if one can neither be suspended nor lose its pods one by one.
func (p *Preemptor) checkJobs(ctx context.Context, r *reservation) (suspended map[gang.Identity]bool, ok bool) {
	suspended = map[gang.Identity]bool{}
	for _, job := range jobsOf(r.units) {
		err := p.persist(func() error { return p.jobs.Check(ctx, job) })
		if apierrors.IsForbidden(err) && !job.Brittle() || suspend.Singly(err) {
			continue // its pods can be deleted one by one
		}
		if err != nil {
			p.refuseJob(ctx, r, job, err)
			return nil, false
		}
		suspended[job.Identity()] = true
	}
	return suspended, true
}

// checkPods reports whether all of some pods can be deleted, as far as dry runs show. A server that does not answer refuses nothing, nor does a webhook that takes
// no dry runs.
func (p *Preemptor) checkPods(ctx context.Context, r *reservation, pods []*corev1.Pod) bool {
	var mu sync.Mutex
	var kept *corev1.Pod // the first that cannot be
	var why error
	until, stop := context.WithCancel(ctx)
	defer stop()
	workqueue.ParallelizeUntil(until, atOnce, len(pods), func(i int) {
		pod := pods[i]
		err := p.engine.Framework().ClientSet().CoreV1().Pods(pod.Namespace).Delete(until, pod.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &pod.UID}, DryRun: []string{metav1.DryRunAll},
		})
		if !outcome.Refused(err) || outcome.Transient(err) || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || outcome.Untried(err) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if kept == nil {
			kept, why = pod, err
			stop()
		}
	})
	if kept == nil {
		return true
	}
	p.refusePod(ctx, r, kept, why)
	return false
}

// suspendJobs suspends those jobs of the victims that can be; ok is false if one could not.
func (p *Preemptor) suspendJobs(ctx context.Context, r *reservation, suspended map[gang.Identity]bool) (ok bool) {
	for _, job := range jobsOf(r.units) {
		if !suspended[job.Identity()] {
			continue
		}
		order := suspend.Order{
			Reason: ReasonJobPreempted, Annotate: true, Why: r.because(p.claims.Reader(job.Namespace)),
			Until: "its pods are gone and the preemptor has its places",
		}
		if err := p.persist(func() error { return p.jobs.Suspend(ctx, job, order) }); err != nil {
			p.refuseJob(ctx, r, job, err)
			return false
		}
	}
	return true
}

// evictAll evicts pods; the reservation ends if one of them could not be. There may be many, and the API server slow: who does not need the room any more has no
// further ones evicted.
func (p *Preemptor) evictAll(ctx context.Context, r *reservation, pods []*corev1.Pod, suspended map[gang.Identity]bool) {
	var mu sync.Mutex
	var failed error
	var stay []*corev1.Pod
	goes := p.unitsToGo(r, suspended)
	workqueue.ParallelizeUntil(ctx, atOnce, len(pods), func(i int) {
		if !goes(pods[i]) {
			mu.Lock()
			defer mu.Unlock()
			stay = append(stay, pods[i])
			return
		}
		if err := p.persist(func() error { return p.evict(ctx, r, pods[i]) }); err != nil {
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
		}
	})
	if len(stay) > 0 {
		p.end(r, endGone)
		p.stays(stay)
	}
	if failed != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(failed, "Cannot evict for preemption", "for", claims.Describe(r.key))
		p.end(r, endFailed)
		p.retry(r.key, r.pods)
	}
}

// unitsToGo reports of pods whether their units are to go. That is decided when the first pod of a unit is about to, or its job was suspended: none goes in part.
func (p *Preemptor) unitsToGo(r *reservation, suspended map[gang.Identity]bool) func(*corev1.Pod) bool {
	of := map[types.UID]func() bool{}
	for _, u := range r.units {
		begun := slices.ContainsFunc(u.Pods, func(pod *corev1.Pod) bool {
			job, owned := suspend.Of(pod)
			return owned && suspended[job.Identity()]
		})
		goes := sync.OnceValue(func() bool { return begun || p.begins(r) })
		for _, pod := range u.Pods {
			of[pod.UID] = goes
		}
	}
	return func(pod *corev1.Pod) bool { return of[pod.UID]() }
}

// persist repeats a request that the API could not answer, or that met another client's change.
func (p *Preemptor) persist(f func() error) error {
	return retry.OnError(patience(), func(err error) bool {
		var refused *suspend.Refusal
		return !errors.As(err, &refused) && (outcome.Transient(err) || apierrors.IsConflict(err))
	}, f)
}

// refuseJob leaves a job alone that cannot be suspended.
func (p *Preemptor) refuseJob(ctx context.Context, r *reservation, job suspend.Target, err error) {
	hint := ""
	if apierrors.IsForbidden(err) {
		hint = "the rights are in install/scheduler-policy-rbac.yaml"
	}
	klog.FromContext(ctx).Info("A job cannot be suspended to free nodes", "job", job.String(), "for", claims.Describe(r.key), "err", err, "hint", hint)
	p.spare(r, job.Identity())
}

// refusePod leaves a pod alone that cannot be deleted. An event on who it was to go for has the reason, as only who sees the pod may read it.
func (p *Preemptor) refusePod(ctx context.Context, r *reservation, pod *corev1.Pod, err error) {
	klog.FromContext(ctx).Info("A pod cannot be deleted to free a node", "pod", klog.KObj(pod), "for", claims.Describe(r.key), "err", err)
	note := "a pod of another namespace cannot be evicted for it"
	if p.claims.Reader(r.key.Namespace).Sees(pod.Namespace) {
		note = fmt.Sprintf("pod %s/%s cannot be evicted for it: %v", pod.Namespace, pod.Name, err)
	}
	p.engine.Framework().EventRecorder().WithLogger(klog.FromContext(ctx)).Eventf(r.pods[0], nil, corev1.EventTypeWarning, ReasonNotPreempted, "Preempting", "%s", note)
	p.spare(r, gang.IdentityOf(pod))
}

// spare leaves a victim alone for a while, and has others chosen.
func (p *Preemptor) spare(r *reservation, victim gang.Identity) {
	p.mu.Lock()
	p.spared[victim] = p.clock.Now().Add(sparedFor)
	p.mu.Unlock()
	p.end(r, endRefused)
	p.retry(r.key, r.pods)
}

// evict deletes a pod as kube-scheduler does: one that is on its way to its node
// is called back, another gets the condition DisruptionTarget first.
func (p *Preemptor) evict(ctx context.Context, r *reservation, pod *corev1.Pod) error {
	handle, called := p.engine.Framework(), false
	if waiting := handle.GetWaitingPod(pod.UID); waiting != nil {
		called = waiting.Preempt(Name, "preempted")
	} else if binding := handle.GetPodInPreBind(pod.UID); binding != nil {
		called = binding.CancelPod("preempted by " + Name)
	}
	if !called {
		if err := p.remove(ctx, r, pod); err != nil {
			return err
		}
	}
	reader := p.claims.Reader(pod.Namespace)
	var preemptor runtime.Object // the event has its name
	if reader.Sees(r.key.Namespace) {
		preemptor = r.pods[0]
	}
	handle.EventRecorder().WithLogger(klog.FromContext(ctx)).Eventf(pod, preemptor, corev1.EventTypeNormal, ReasonPreempted, "Preempting", "%s", r.note(reader))
	if called {
		p.Gone(pod)
	}
	return nil
}

// because is why a victim is preempted, as its users read it: preempted by gang research/llama of priority 5.
func (r *reservation) because(reader audience.Reader) string {
	if !reader.Sees(r.key.Namespace) {
		return "preempted by " + reader.Title(r.who)
	}
	return fmt.Sprintf("preempted by %s of priority %d", reader.Title(r.who), r.priority)
}

// note is because in the event on a victim. It begins as kube-scheduler's does, by which tools know a preemption: a gang is a podgroup there.
func (r *reservation) note(reader audience.Reader) string {
	text := r.because(reader)
	if gang, named := strings.CutPrefix(text, "preempted by gang "); named {
		return "Preempted by podgroup " + gang
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// remove writes on a pod why it goes, and deletes it, if it still is that pod.
func (p *Preemptor) remove(ctx context.Context, r *reservation, pod *corev1.Pod) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status": map[string]any{"conditions": []map[string]any{{
			"type": corev1.DisruptionTarget, "status": corev1.ConditionTrue, "reason": corev1.PodReasonPreemptionByScheduler,
			"message":            r.because(p.claims.Reader(pod.Namespace)),
			"lastTransitionTime": metav1.NewTime(p.clock.Now()), "observedGeneration": pod.Generation,
		}}},
	})
	if err != nil {
		return err
	}
	pods := p.engine.Framework().ClientSet().CoreV1().Pods(pod.Namespace)
	_, err = pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err == nil {
		err = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	}
	switch {
	case apierrors.IsConflict(err) && p.engine.Pod(pod) != nil: // it was written to at the same time
		return fmt.Errorf("evict pod %s/%s: %w", pod.Namespace, pod.Name, err)
	case apierrors.IsNotFound(err), apierrors.IsConflict(err), outcome.Replaced(err): // it is gone; another may have its name
		p.Gone(pod)
		return nil
	case err != nil:
		return fmt.Errorf("evict pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
