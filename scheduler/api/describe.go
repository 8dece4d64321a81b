package api

import (
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/order"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// Facts are the state of one gang in the parts of the scheduler.
type Facts struct {
	Key    gang.Key
	Object *Object
	// Pods are its members, those that have ended included, by name.
	Pods []*corev1.Pod
	// MinMember is what it declares, Required what it needs at this moment; both are 0
	// where that is not known.
	MinMember, Required, Priority int32
	// Lack is why it cannot be tried; without a text where it can.
	Lack gangcache.Lack
	// Reason is why it was not placed; nil where nothing is known.
	Reason      *reasons.Reason
	Claims      []Claim
	Reservation *Reservation
	// Ranking has the order of those that wait, at the moment At.
	Ranking *order.Ranking
	At      time.Time
}

// Describe puts the facts on a gang together.
func Describe(f Facts) Gang {
	counts := schedulerplugins.CountPods(schedulerplugins.Staying(f.Pods))
	g := Gang{
		Namespace: f.Key.Namespace, Name: f.Key.Name, Dialect: f.Key.Dialect, Object: f.Object,
		MinMember: f.MinMember, Priority: f.Priority, Required: f.Required, Claims: f.Claims, Reservation: f.Reservation,
		Pods: Pods{Total: int32(len(f.Pods)), Bound: counts.Bound, Running: counts.Running, Succeeded: counts.Succeeded, Failed: counts.Failed},
	}
	if len(f.Pods) > 0 {
		g.Scheduler = f.Pods[0].Spec.SchedulerName
	}
	g.State = stateOf(f, g.Pods)
	g.Since = since(f.Pods, g.State)
	if f.Lack.Text == "" && (g.State == gang.Pending || g.State == BelowMinimum) && g.Since != nil {
		g.Order = orderOf(f, *g.Since)
	}
	switch waits := slices.ContainsFunc(f.Pods, gang.AwaitsNode); {
	case !waits:
	case f.Lack.Text != "":
		g.Code, g.Message = f.Lack.Code, f.Lack.Text
	case f.Reason != nil:
		g.Code, g.Message, g.Shortages = f.Reason.Finding.Code, f.Reason.Finding.Message, f.Reason.Shortages
		for _, b := range f.Reason.Blockers {
			g.Blockers = append(g.Blockers, b.Name)
		}
		g.Required, g.Fit, g.Retry = f.Reason.Required, &f.Reason.Fit, f.Reason.Retry
		if next := f.Reason.NextAttempt; !next.IsZero() {
			g.NextAttempt = &next
		}
	}
	return g
}

// orderOf is the place of a gang that waits for nodes.
func orderOf(f Facts, since time.Time) *Order {
	var waiting []*corev1.Pod
	for _, pod := range f.Pods {
		if gang.AwaitsNode(pod) {
			waiting = append(waiting, pod)
		}
	}
	policy, e := f.Ranking.Policy(), order.Entry{Since: since, Expected: f.Ranking.Expect(waiting)}
	o := &Order{Policy: policy, Message: policy.Describe(e, f.At), Basis: e.Expected.Basis, ExpectedRuntime: int64(e.Expected.Runtime / time.Second)}
	if policy == order.HighestResponseRatio {
		o.Ratio = math.Round(e.Ratio(f.At)*100) / 100
	}
	return o
}

func stateOf(f Facts, pods Pods) State {
	// Of a gang that needs no number of members, or of which that is not known,
	// those that have places run.
	enough := pods.Bound > 0 && pods.Bound >= f.Required
	switch {
	case pods.Total > 0 && pods.Succeeded+pods.Failed == pods.Total && pods.Succeeded >= max(1, f.MinMember):
		return gang.Succeeded
	case pods.Total > 0 && pods.Succeeded+pods.Failed == pods.Total:
		return gang.Failed
	case enough:
		return gang.Running
	case pods.Bound > 0:
		return BelowMinimum
	case f.Lack.Text != "":
		return Incomplete
	}
	return gang.Pending
}

// since is when a gang came to its state: when the last of its members got its
// place, or since when the first of those that want one is known to wait.
func since(pods []*corev1.Pod, state State) *time.Time {
	var at *time.Time
	for _, pod := range pods {
		moment := pod.CreationTimestamp.Time
		_, condition := podutil.GetPodCondition(&pod.Status, corev1.PodScheduled)
		if condition != nil && !condition.LastTransitionTime.IsZero() {
			moment = condition.LastTransitionTime.Time
		}
		later := false
		switch state {
		case gang.Running:
			if pod.Spec.NodeName == "" {
				continue
			}
			later = true
		case gang.Succeeded, gang.Failed:
			return nil // pods do not record when they ended, and their containers are not kept
		default:
			if !gang.AwaitsNode(pod) {
				continue
			}
		}
		if at == nil || later && moment.After(*at) || !later && moment.Before(*at) {
			at = &moment
		}
	}
	return at
}
