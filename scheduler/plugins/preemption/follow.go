package preemption

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// open reserves room that is going to be free.
func (p *Preemptor) open(r *reservation) {
	p.mu.Lock()
	if p.reservations[r.key] != nil {
		p.count.ends.WithLabelValues(endReplaced).Inc()
	}
	p.reservations[r.key] = r
	if len(r.victims) == 0 { // no pod that goes would end it
		r.cleared = p.clock.Now()
	}
	p.count.claims.Set(float64(len(p.reservations)))
	p.claims.ReplaceFor(claims.Preemption, r.key, r.claims())
	var left []*corev1.Pod // since the snapshot was made
	for _, pod := range r.victims {
		if p.engine.Pod(pod) == nil {
			left = append(left, pod)
		}
	}
	p.mu.Unlock()
	p.claims.Wake()
	for _, pod := range left {
		p.Gone(pod)
	}
}

// end gives a reservation up. It does nothing if that has happened.
func (p *Preemptor) end(r *reservation, how string) {
	p.mu.Lock()
	if p.reservations[r.key] != r {
		p.mu.Unlock()
		return
	}
	delete(p.reservations, r.key)
	p.count.claims.Set(float64(len(p.reservations)))
	p.count.ends.WithLabelValues(how).Inc()
	p.claims.ReplaceFor(claims.Preemption, r.key, nil)
	switch how {
	case endUsed, endGone:
		delete(p.failed, r.key)
	case endFailed:
		b := p.failed[r.key]
		if b == nil {
			b = &backoff{}
			p.failed[r.key] = b
		}
		b.until, b.pods = p.clock.Now().Add(min(firstBackoff<<min(b.times, 10), maxBackoff)), r.pods
		b.times++
	}
	stranded, awaiting := p.dependentsOf(r, how)
	p.mu.Unlock()
	p.claims.Wake()
	p.again(stranded, awaiting)
}

// dependentsOf are those that count on the victims of a reservation to leave, which stay if it has ended before they were evicted: other reservations, and preemptors
// that wait without one. They are tried again, as no pod that goes would have them tried. The lock must be held.
func (p *Preemptor) dependentsOf(r *reservation, how string) (stranded []*reservation, awaiting map[types.NamespacedName][]*corev1.Pod) {
	victims := podsOf(r.units)
	if r.begun { // they leave, but where a job of theirs was not suspended after all
		victims = nil
		if how == endRefused {
			victims = p.left(r)
		}
	}
	if len(victims) == 0 {
		return nil, nil
	}
	if how == endRefused || how == endGone || how == endOverdue { // the attempt under way may count on them; what it ends itself it does not
		p.withdrawn++
	}
	return p.countingOn(victims)
}

// countingOn are those that count on pods to leave, and are to be tried again. The lock must be held.
func (p *Preemptor) countingOn(pods []*corev1.Pod) (stranded []*reservation, awaiting map[types.NamespacedName][]*corev1.Pod) {
	for _, o := range p.reservations {
		if slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return o.victims[pod.UID] != nil }) {
			stranded = append(stranded, o)
		}
	}
	awaiting, p.awaiting = p.awaiting, map[types.NamespacedName][]*corev1.Pod{}
	return stranded, awaiting
}

// stays has those tried again that count on pods which stay after all: their reservation has ended while others of its victims were evicted.
func (p *Preemptor) stays(pods []*corev1.Pod) {
	p.mu.Lock()
	p.withdrawn++
	stranded, awaiting := p.countingOn(pods)
	p.mu.Unlock()
	p.again(stranded, awaiting)
}

// again has preemptors tried again: those of reservations, which end, and others.
func (p *Preemptor) again(stranded []*reservation, awaiting map[types.NamespacedName][]*corev1.Pod) {
	for _, o := range stranded {
		p.end(o, endReplaced)
		p.retry(o.key, o.pods)
	}
	for key, pods := range awaiting {
		p.retry(key, pods)
	}
}

// withdrawals is how often victims have stayed that were to leave.
func (p *Preemptor) withdrawals() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.withdrawn
}

// recordResult records the result of an attempt that began when victims had stayed so often. If others have since, it counted on pods that do not leave, and is made again.
func (p *Preemptor) recordResult(c cause, result string, withdrawals int) {
	p.mu.Lock()
	mine := p.reservations[c.key]
	// A reservation that has ended meanwhile is tried again by whoever ended it.
	again := p.withdrawn != withdrawals && (result == resultEvicts && mine != nil || result == resultWaits && mine == nil)
	if delete(p.awaiting, c.key); result == resultWaits && mine == nil {
		p.awaiting[c.key] = c.pods
	}
	p.mu.Unlock()
	if !again {
		return
	}
	if mine != nil {
		p.end(mine, endReplaced)
	}
	p.retry(c.key, c.pods)
}

// used ends the reservation of a pod or a gang that is being placed. Of members above the minimum, each ends its own part of it.
func (p *Preemptor) used(pod *corev1.Pod, node string) {
	key := claims.ConsumerOf(pod)
	p.mu.Lock()
	r := p.reservations[key]
	if r != nil && r.singly {
		r.take(pod, node)
		if len(r.assigned) > 0 {
			p.claims.ReplaceFor(claims.Preemption, key, r.claims())
			p.mu.Unlock()
			return
		}
	}
	delete(p.failed, key)
	p.mu.Unlock()
	if r != nil {
		p.end(r, endUsed)
	}
}

// take takes a pod that has a place out of a reservation. A place that was to be another's is made good for with its own, and if it had none, the other
// one has none any more. The preemptor's lock must be held.
func (r *reservation) take(pod *corev1.Pod, node string) {
	assigned := maps.Clone(r.assigned)
	at, own := "", func(p *corev1.Pod) bool { return p.UID == pod.UID }
	for name, pods := range assigned {
		if slices.ContainsFunc(pods, own) {
			at, assigned[name] = name, slices.DeleteFunc(slices.Clone(pods), own)
		}
	}
	if others := assigned[node]; at != node && len(others) > 0 {
		assigned[node] = slices.Clone(others[1:])
		if at != "" {
			assigned[at] = append(slices.Clone(assigned[at]), others[0])
		}
	}
	maps.DeleteFunc(assigned, func(_ string, pods []*corev1.Pod) bool { return len(pods) == 0 })
	r.assigned = assigned
}

// waiting are those of a reservation that it is still for: of members that are placed one by one, those that have no place. The preemptor's lock must be
// held.
func (r *reservation) waiting() []*corev1.Pod {
	if !r.singly {
		return r.pods
	}
	return slices.Concat(slices.Collect(maps.Values(r.assigned))...)
}

// Gone records that a pod has left its node; the engine's cache must know. What
// waited for the last one is tried at once.
func (p *Preemptor) Gone(pod *corev1.Pod) {
	p.mu.Lock()
	var cleared []*reservation
	for _, r := range p.reservations {
		if r.victims[pod.UID] == nil {
			continue
		}
		r.gone[pod.UID] = r.victims[pod.UID].Spec.NodeName
		if delete(r.victims, pod.UID); len(r.victims) == 0 {
			r.cleared = p.clock.Now()
			cleared = append(cleared, r)
		}
	}
	p.mu.Unlock()
	for _, r := range cleared {
		p.retry(r.key, r.pods)
	}
}

// sweep ends what no event ends: reservations for pods that do not wait any more, that
// are not used, or that do not come free; and has preemptors tried again that waited
// after a failed attempt.
func (p *Preemptor) sweep(logger klog.Logger) {
	now := p.clock.Now()
	type ending struct {
		*reservation
		how string
	}
	var ends []ending
	p.mu.Lock()
	for _, r := range p.reservations {
		switch {
		case !p.waits(r.waiting()):
			ends = append(ends, ending{r, endGone})
		case !r.cleared.IsZero() && now.Sub(r.cleared) > useWithin:
			ends = append(ends, ending{r, endFailed})
		case r.cleared.IsZero() && p.keepsBack(r, now):
			p.insist(r, now)
		case r.cleared.IsZero() && p.overdue(r, now):
			ends = append(ends, ending{r, endOverdue})
		}
	}
	due := map[types.NamespacedName][]*corev1.Pod{}
	for key, b := range p.failed {
		switch {
		case !p.waits(b.pods):
			delete(p.failed, key)
		case !b.until.IsZero() && !now.Before(b.until):
			b.until = time.Time{}
			due[key] = b.pods
		}
	}
	p.forgetNominees()
	maps.DeleteFunc(p.awaiting, func(_ types.NamespacedName, pods []*corev1.Pod) bool { return !p.waits(pods) })
	maps.Copy(due, p.rested(now))
	for job, until := range p.spared {
		if now.After(until) {
			delete(p.spared, job)
		}
	}
	p.mu.Unlock()
	for _, e := range ends {
		logger.V(2).Info("A reservation of preemption ends", "for", claims.Describe(e.key), "how", e.how)
		p.end(e.reservation, e.how)
		if e.how != endGone {
			p.retry(e.key, e.pods)
		}
	}
	for key, pods := range due {
		p.retry(key, pods)
	}
}

// stillWait reports whether the pods of a preemptor are what they were when the engine
// took them up: no victim has to go for a pod that is being deleted, or that is tried
// on its own and has become a member of a gang.
func (p *Preemptor) stillWait(c cause) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pod := range c.pods {
		now := p.engine.Pod(pod)
		if now == nil || now.DeletionTimestamp != nil || now.Spec.NodeName != "" || claims.ConsumerOf(now) != c.key {
			return false
		}
	}
	return true
}

// begins reports whether a reservation still is the preemptor's, and is waited for. Its victims leave from then on.
func (p *Preemptor) begins(r *reservation) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	current := p.reservations[r.key] == r && p.waits(r.waiting())
	r.begun = r.begun || current
	return current
}

// waits reports whether one of the pods still waits for a place. The lock must be held.
func (p *Preemptor) waits(pods []*corev1.Pod) bool {
	for _, pod := range pods {
		if now := p.engine.Pod(pod); now != nil && now.DeletionTimestamp == nil && now.Spec.NodeName == "" {
			return true
		}
	}
	return false
}

// left are the victims that are not on their way out. The lock must be held.
func (p *Preemptor) left(r *reservation) (pods []*corev1.Pod) {
	for _, pod := range podsOf(r.units) {
		if now := p.engine.Pod(pod); r.victims[pod.UID] != nil && now != nil && now.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

// keepsBack reports whether jobs have been suspended long enough for their pods to be on their way out, and some are not. The lock must be held.
func (p *Preemptor) keepsBack(r *reservation, now time.Time) bool {
	return len(r.jobs) > 0 && !r.insists && now.Sub(r.since) > min(giveBackWithin, r.timeout) && len(p.left(r)) > 0
}

// insist has the victims deleted that suspended jobs leave. The lock must be held.
func (p *Preemptor) insist(r *reservation, now time.Time) {
	r.insists = true
	select {
	case p.orders <- r:
		r.since = now
	default: // the API cannot keep up
		r.insists = false
	}
}

// overdue reports whether a victim has had its time to go. The lock must be held.
func (p *Preemptor) overdue(r *reservation, now time.Time) bool {
	for _, pod := range r.victims {
		since := r.since
		if seen := p.engine.Pod(pod); seen != nil && seen.DeletionTimestamp != nil && seen.DeletionTimestamp.After(since) {
			since = seen.DeletionTimestamp.Time
		}
		if now.Sub(since) > r.timeout {
			return true
		}
	}
	return false
}
