package preemption

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// open keeps room that is going to be free.
func (p *Preemptor) open(r *room) {
	p.mu.Lock()
	if old := p.rooms[r.key]; old != nil {
		p.count.ends.WithLabelValues(endReplaced).Inc()
		r.turned = old.turned
	}
	p.rooms[r.key] = r
	p.count.rooms.Set(float64(len(p.rooms)))
	var left []*corev1.Pod // since the snapshot was made
	for uid, pod := range r.victims {
		if now, err := p.pods.Pods(pod.Namespace).Get(pod.Name); err != nil || now.UID != uid {
			left = append(left, pod)
		}
	}
	p.mu.Unlock()
	for _, pod := range left {
		p.Gone(pod)
	}
}

// end gives room back to everybody, and has those tried again whom it turned
// away. It does nothing if that has happened.
func (p *Preemptor) end(logger klog.Logger, r *room, how string) {
	p.mu.Lock()
	if p.rooms[r.key] != r {
		p.mu.Unlock()
		return
	}
	delete(p.rooms, r.key)
	p.count.rooms.Set(float64(len(p.rooms)))
	p.count.ends.WithLabelValues(how).Inc()
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
	turned, handle := r.turned, p.handle
	p.mu.Unlock()
	if p.Released != nil {
		p.Released()
	}
	if len(turned) > 0 && handle != nil {
		handle.Activate(logger, turned)
	}
}

// turnAway remembers a pod that has to keep off a room.
func (p *Preemptor) turnAway(key types.NamespacedName, pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.rooms[key]
	if r == nil {
		return
	}
	if r.turned == nil {
		r.turned = map[string]*corev1.Pod{}
	}
	r.turned[pod.Namespace+"/"+pod.Name] = pod
}

// used ends the room of a pod or a gang that is being placed.
func (p *Preemptor) used(logger klog.Logger, pod *corev1.Pod) {
	key := keyOf(pod)
	p.mu.Lock()
	r := p.rooms[key]
	delete(p.vain, key)
	p.mu.Unlock()
	if r != nil {
		p.end(logger, r, endUsed)
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
		p.retry(klog.Background(), r.key, r.pods)
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
	for _, name := range p.names() {
		r := p.rooms[name]
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
		logger.V(2).Info("Room made by preemption ends", "for", display(e.key), "how", e.how)
		p.end(logger, e.room, e.how)
		if e.how != endGone {
			p.retry(logger, e.key, e.pods)
		}
	}
	for key, pods := range due {
		p.retry(logger, key, pods)
	}
}

// stillWait tells whether those who want room are what they were when the engine
// took them up: nobody has to go for a pod that is being deleted, or that is tried
// on its own and has become a member of a gang.
func (p *Preemptor) stillWait(c cause) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pod := range c.pods {
		now, err := p.pods.Pods(pod.Namespace).Get(pod.Name)
		if err != nil || now.UID != pod.UID || now.DeletionTimestamp != nil || now.Spec.NodeName != "" || keyOf(now) != c.key {
			return false
		}
	}
	return true
}

// waits tells whether one of the pods still waits for a place. The lock must be held.
func (p *Preemptor) waits(pods []*corev1.Pod) bool {
	for _, pod := range pods {
		now, err := p.pods.Pods(pod.Namespace).Get(pod.Name)
		if err == nil && now.UID == pod.UID && now.DeletionTimestamp == nil && now.Spec.NodeName == "" {
			return true
		}
	}
	return false
}

// overdue tells whether a victim has had its time to go. The lock must be held.
func (p *Preemptor) overdue(r *room, now time.Time) bool {
	for _, pod := range r.victims {
		since := r.since
		if seen, err := p.pods.Pods(pod.Namespace).Get(pod.Name); err == nil && seen.UID == pod.UID && seen.DeletionTimestamp != nil && seen.DeletionTimestamp.After(since) {
			since = seen.DeletionTimestamp.Time
		}
		if now.Sub(since) > r.timeout {
			return true
		}
	}
	return false
}
