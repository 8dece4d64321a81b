package preemption

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// open claims room that is going to be free.
func (p *Preemptor) open(r *room) {
	p.mu.Lock()
	if p.rooms[r.key] != nil {
		p.count.ends.WithLabelValues(endReplaced).Inc()
	}
	p.rooms[r.key] = r
	p.count.rooms.Set(float64(len(p.rooms)))
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

// end gives room back. It does nothing if that has happened.
func (p *Preemptor) end(r *room, how string) {
	p.mu.Lock()
	if p.rooms[r.key] != r {
		p.mu.Unlock()
		return
	}
	delete(p.rooms, r.key)
	p.count.rooms.Set(float64(len(p.rooms)))
	p.count.ends.WithLabelValues(how).Inc()
	p.claims.ReplaceFor(claims.Preemption, r.key, nil)
	switch how {
	case endUsed, endGone:
		delete(p.vain, r.key)
	case endVain:
		b := p.vain[r.key]
		if b == nil {
			b = &backoff{}
			p.vain[r.key] = b
		}
		b.until, b.pods = p.clock.Now().Add(min(firstBackoff<<min(b.times, 10), maxBackoff)), r.pods
		b.times++
	}
	p.mu.Unlock()
	p.claims.Wake()
}

// used ends the room of a pod or a gang that is being placed.
func (p *Preemptor) used(pod *corev1.Pod) {
	key := claims.ConsumerOf(pod)
	p.mu.Lock()
	r := p.rooms[key]
	delete(p.vain, key)
	p.mu.Unlock()
	if r != nil {
		p.end(r, endUsed)
	}
}

// Gone notes that a pod has left its node; the engine's cache must know. Whoever
// waited for the last one is tried at once.
func (p *Preemptor) Gone(pod *corev1.Pod) {
	p.mu.Lock()
	var cleared []*room
	for _, r := range p.rooms {
		if r.victims[pod.UID] == nil {
			continue
		}
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

// sweep ends what no event ends: room for those who do not wait any more, that
// is not used, or that does not come free; and has those tried again who waited
// because it was in vain.
func (p *Preemptor) sweep(logger klog.Logger) {
	now := p.clock.Now()
	type ending struct {
		*room
		how string
	}
	var ends []ending
	p.mu.Lock()
	for _, r := range p.rooms {
		switch {
		case !p.waits(r.pods):
			ends = append(ends, ending{r, endGone})
		case !r.cleared.IsZero() && now.Sub(r.cleared) > useWithin:
			ends = append(ends, ending{r, endVain})
		case r.cleared.IsZero() && p.overdue(r, now):
			ends = append(ends, ending{r, endOverdue})
		}
	}
	due := map[types.NamespacedName][]*corev1.Pod{}
	for key, b := range p.vain {
		switch {
		case !p.waits(b.pods):
			delete(p.vain, key)
		case !b.until.IsZero() && !now.Before(b.until):
			b.until = time.Time{}
			due[key] = b.pods
		}
	}
	for job, until := range p.spared {
		if now.After(until) {
			delete(p.spared, job)
		}
	}
	p.mu.Unlock()
	for _, e := range ends {
		logger.V(2).Info("Room made by preemption ends", "for", claims.Describe(e.key), "how", e.how)
		p.end(e.room, e.how)
		if e.how != endGone {
			p.retry(e.key, e.pods)
		}
	}
	for key, pods := range due {
		p.retry(key, pods)
	}
}

// stillWait tells whether those who want room are what they were when the engine
// took them up: nobody has to go for a pod that is being deleted, or that is tried
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

// waits tells whether one of the pods still waits for a place. The lock must be held.
func (p *Preemptor) waits(pods []*corev1.Pod) bool {
	for _, pod := range pods {
		if now := p.engine.Pod(pod); now != nil && now.DeletionTimestamp == nil && now.Spec.NodeName == "" {
			return true
		}
	}
	return false
}

// overdue tells whether a victim has had its time to go. The lock must be held.
func (p *Preemptor) overdue(r *room, now time.Time) bool {
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
