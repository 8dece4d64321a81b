package preemption

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/plugins/planner"
)

// cause is the preemptor of one attempt.
type cause struct {
	key      types.NamespacedName
	pods     []*corev1.Pod // that wait
	bound    []types.UID   // members that have places
	min      int32         // how many must have one, those included
	more     bool          // its minimum has places: min is one more, and as many as possible are to have one
	topology gang.Topology
	priority int32
	never    bool // it must not preempt
	// judge tries the pods on the engine's snapshot, from which the victims have
	// been taken. It returns where they fit; nil for nowhere.
	judge func(ctx context.Context, assigned map[string][]*corev1.Pod) (map[string][]*corev1.Pod, error)
}

// causeOf reads a gang; ok is false for one of which all members have places. Members above its minimum preempt when that has places, as pods of
// their priority that are in no gang.
func (pl *Plugin) causeOf(info fwk.PodGroupInfo) (c cause, ok bool, err error) {
	group := info.GetPodGroup()
	if group == nil || len(info.GetUnscheduledPods()) == 0 {
		return cause{}, false, nil
	}
	state, err := pl.handle.SnapshotSharedLister().PodGroupStates().Get(group.Namespace, group.Name)
	if err != nil {
		return cause{}, false, fmt.Errorf("look up gang: %w", err)
	}
	c = cause{key: types.NamespacedName{Namespace: group.Namespace, Name: group.Name}, pods: info.GetUnscheduledPods()}
	for _, pod := range state.ScheduledPods() {
		c.bound = append(c.bound, pod.UID)
	}
	c.topology = engine.TopologyOf(group)
	c.min, c.more = int32(len(c.bound))+1, true
	if policy := group.Spec.SchedulingPolicy.Gang; policy != nil && policy.MinCount >= c.min {
		c.min, c.more = policy.MinCount, false
	}
	if group.Spec.Priority != nil {
		c.priority = *group.Spec.Priority
	}
	policy := c.pods[0].Spec.PreemptionPolicy
	c.never = policy != nil && *policy == corev1.PreemptNever
	return c, true, nil
}

// attempt frees nodes, or finds out why that does not help. makes reports that nodes
// are being freed, be it for the first time or not.
func (pl *Plugin) attempt(ctx context.Context, c cause) (makes bool, what string) {
	withdrawals := pl.preemptor.withdrawals()
	result, what, took := pl.resultOf(ctx, c)
	pl.preemptor.recordResult(c, result, withdrawals)
	switch result {
	case resultForbidden, resultNone:
		pl.preemptor.parked.NoVictims(c.key, false)
	case resultImpossible, resultRefused:
		pl.preemptor.parked.NoVictims(c.key, true)
	case resultUnknown:
		pl.preemptor.parked.VictimsUnknown(c.key, took)
	}
	return result == resultEvicts || result == resultWaits, what
}

// outranks reports whether a pod of a lower priority has a place.
func (pl *Plugin) outranks(priority int32) bool {
	nodes, err := pl.handle.SnapshotSharedLister().NodeInfos().List()
	return err == nil && slices.ContainsFunc(nodes, func(node fwk.NodeInfo) bool {
		return slices.ContainsFunc(node.GetPods(), func(info fwk.PodInfo) bool {
			return corev1helpers.PodPriority(info.GetPod()) < priority && !placement.DaemonSetPod(info.GetPod())
		})
	})
}

// resultOf tries to free nodes for a preemptor that may have others evicted. It returns how long it searched, 0 if it did not.
func (pl *Plugin) resultOf(ctx context.Context, c cause) (result, what string, took time.Duration) {
	postponed := pl.preemptor.planner.Postponed(c.key, c.pods)
	switch {
	case !pl.args.Enabled:
		return resultForbidden, "preemption is switched off", 0
	case c.never && pl.outranks(c.priority):
		pl.preemptor.parked.MayNotPreempt(c.key)
		return resultForbidden, planner.NeverPreempts, 0
	case c.never:
		return resultNone, helpless, 0
	case !pl.preemptor.stillWait(c):
		return "", "preemption: it has changed", 0
	case postponed != "":
		return "", "preemption: " + postponed, 0
	case pl.preemptor.planner.WaitsForVolumes(c.key):
		return "", "preemption: its volumes are being made", 0
	}
	start := time.Now()
	within, cancel := context.WithTimeout(ctx, pl.args.SearchBudget.Duration)
	defer cancel()
	result, what, err := pl.try(ctx, within, c, c.more && len(c.pods) > 1, nil)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot free nodes", "for", claims.Describe(c.key))
		return "", "preemption failed", 0
	}
	took = time.Since(start)
	if result != "" {
		pl.preemptor.count.duration.Observe(took.Seconds())
		pl.preemptor.count.attempts.WithLabelValues(result).Inc()
	}
	return result, what, took
}

const (
	// helpless is the message where no victims would help.
	helpless = "preemption does not help"
	// fitsWithout is the message where no victim is needed.
	fitsWithout = "there is room without preemption"
	// othersLeave is the message where those are enough who leave by themselves.
	othersLeave = "waits for pods that leave"
)

// try looks for victims, while within lasts; for all of further members that can have a place at once if most is set, and otherwise for what is missing. The preemptor's
// reservation may have ended in this attempt; nil if it has not.
func (pl *Plugin) try(ctx, within context.Context, c cause, most bool, ended *reservation) (result, what string, err error) {
	p := pl.preemptor
	q, err := p.planner.Request(pl.handle, c.key, c.pods, placement.Gang{MinMember: c.min, Topology: c.topology, Bound: c.bound})
	if err != nil {
		return "", "", err
	}
	leave := pl.departures(ended)
	h := leave.occupants(q.Cluster, c.priority)
	candidates := Collect(h.staying, leave.others(q.Cluster), pl.membership(), c.priority)
	p.mu.Lock()
	mine, failed := p.reservations[c.key], p.failed[c.key]
	cleared := mine != nil && !mine.cleared.IsZero()
	p.mu.Unlock()
	if len(candidates.Units) == 0 && len(h.away()) == 0 && mine == nil {
		return resultNone, helpless, nil
	}

	cluster := q.Cluster.Without(gang.UIDs(h.away())...).With(q.Kept(h.away()...)...)
	query := Query{Cluster: cluster, Gang: q.Gang, Candidates: candidates}
	budget := pl.args.SearchBudget.Duration
	if r := placement.Place(within, cluster, q.Gang, placement.Options{Budget: budget}); r.Fits() {
		if mine != nil && !cleared {
			return resultWaits, mine.text, nil
		}
		result, what = pl.waitForLeaving(within, c, q, h, r, mine == nil)
		return result, what, nil
	}
	if mine != nil { // others had to have the nodes that were reserved for it
		how := endReplaced
		if cleared {
			how = endFailed
		}
		p.end(mine, how)
		return pl.try(ctx, within, c, most, mine) // from the start: its victims stay, unless they are being evicted
	}
	if failed != nil && p.clock.Now().Before(failed.until) {
		return resultBackoff, "the room that was made for it was not enough; others are evicted only after a while", nil
	}
	if len(candidates.Units) == 0 {
		return resultNone, helpless, nil
	}
	if query.Budgets, err = pl.budgets.List(labels.Everything()); err != nil {
		return "", "", fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	if most {
		if result, what, err = pl.chooseMost(ctx, within, c, q, query, h); err != nil || result == resultEvicts {
			return result, what, err
		}
		return pl.try(ctx, within, c, false, ended) // from the start: an attempt of the engine changes the index of nodes that the cluster is of
	}
	return pl.choose(ctx, within, c, q, query, h)
}

// waitForLeaving waits for pods that leave by themselves, if there is no room without theirs. There may be: then the engine refuses the preemptor
// for another reason, and no pod that leaves helps it.
func (pl *Plugin) waitForLeaving(ctx context.Context, c cause, q planner.PlacementRequest, h occupants, r placement.Result, reserve bool) (result, what string) {
	if len(h.away()) == 0 || placement.Place(ctx, q.Cluster.With(q.Kept()...), q.Gang, placement.Options{Budget: pl.args.SearchBudget.Duration}).Fits() {
		return "", fitsWithout
	}
	if reserve && h.preempted(c.priority) {
		// Most likely a scheduler before this one freed these nodes for the same preemptor.
		// They would be lost to others of a lower priority.
		pl.keep(c, nil, assignedPods(q.Member, r.Placement), h.leaving, othersLeave)
	}
	return resultWaits, othersLeave
}

// chooseMost has others evicted for as many members above the minimum as can have a place.
func (pl *Plugin) chooseMost(ctx, within context.Context, c cause, q planner.PlacementRequest, query Query, h occupants) (result, what string, err error) {
	budget := pl.args.SearchBudget.Duration / 2 // the rest is for one
	if query.Gang.MinMember = query.Most(within, budget); query.Gang.MinMember <= c.min {
		return "", "", nil
	}
	choice, verdict := Choose(within, query, budget)
	if verdict != Found {
		return "", "", nil
	}
	assigned, err := pl.rehearse(ctx, c, append(podsOf(choice.Units), h.away()...), assignedPods(q.Member, choice.Placement))
	if err != nil || !c.placed(assigned, query) {
		return "", "", err
	}
	return resultEvicts, pl.evicts(ctx, c, choice, assigned, h), nil
}

// choose finds victims, tries the preemptor on the engine without them, and has them evicted. If the engine refuses it, that finds them.
func (pl *Plugin) choose(ctx, within context.Context, c cause, q planner.PlacementRequest, query Query, h occupants) (result, what string, err error) {
	choice, verdict := Choose(within, query, pl.args.SearchBudget.Duration)
	switch verdict {
	case Found:
	case Impossible:
		return resultImpossible, helpless, nil
	case Unknown:
		return resultUnknown, pl.unknown(), nil
	}
	assigned, err := pl.rehearse(ctx, c, append(podsOf(choice.Units), h.away()...), assignedPods(q.Member, choice.Placement))
	if err != nil {
		return "", "", err
	}
	if c.placed(assigned, query) {
		return resultEvicts, pl.evicts(ctx, c, choice, assigned, h), nil
	}
	klog.FromContext(ctx).V(2).Info("Preemption would help by the amounts, and the engine refuses", "for", claims.Describe(c.key))
	choice, assigned, verdict, err = pl.chooseByEngine(ctx, within, c, query, h)
	switch {
	case err != nil:
		return "", "", err
	case verdict == Impossible:
		return resultRefused, helpless, nil
	case verdict == Unknown:
		return resultUnknown, pl.unknown(), nil
	case len(choice.Units) > 0:
		return resultEvicts, pl.evicts(ctx, c, choice, assigned, h), nil
	case len(h.away()) > 0:
		return resultWaits, othersLeave, nil
	}
	return "", fitsWithout, nil
}

// unknown is the message where the time was over before victims were found.
func (pl *Plugin) unknown() string {
	return fmt.Sprintf("no victims of preemption found within %s", pl.args.SearchBudget.Duration)
}

// evicts has victims evicted, and reports whom.
func (pl *Plugin) evicts(ctx context.Context, c cause, choice Choice, assigned map[string][]*corev1.Pod, h occupants) (what string) {
	p := pl.preemptor
	what = "preempts " + describe(choice.Units, p.claims.Reader(c.key.Namespace))
	klog.FromContext(ctx).Info("Preempting", "for", claims.Describe(c.key), "victims", describe(choice.Units, audience.Reader{}), "cheapest", choice.Cheapest)
	for _, u := range choice.Units {
		p.count.victims.WithLabelValues(u.Kind.String()).Add(float64(len(u.Pods)))
	}
	pl.keep(c, choice.Units, assigned, h.leaving, what)
	return what
}

// placed reports whether as many pods have a node as are requested.
func (c cause) placed(assigned map[string][]*corev1.Pod, query Query) bool {
	n := len(c.bound)
	for _, pods := range assigned {
		n += len(pods)
	}
	return len(assigned) > 0 && n >= int(query.Gang.MinMember)
}

// keep opens a reservation for a preemptor, and has its victims evicted.
func (pl *Plugin) keep(c cause, units []Unit, assigned map[string][]*corev1.Pod, leaving []*corev1.Pod, text string) {
	r := newReservation(c, assigned, pl.preemptor.clock.Now())
	r.units, r.text, r.timeout = units, text, pl.args.TerminationTimeout.Duration
	for _, pod := range podsOf(units) {
		r.victims[pod.UID] = pod
	}
	for _, pod := range leaving {
		if assigned[pod.Spec.NodeName] != nil {
			r.victims[pod.UID] = pod
		}
	}
	for _, j := range jobsOf(units) {
		r.jobs[j.Identity()] = true
	}
	pl.preemptor.open(r)
	if len(units) == 0 {
		return
	}
	select {
	case pl.preemptor.orders <- r:
	default: // the API cannot keep up; it is tried again
		pl.preemptor.end(r, endRefused)
	}
}
