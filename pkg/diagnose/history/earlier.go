package history

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/occurrence"
	"github.com/gangctl/gangctl/pkg/gang"
)

// past is a pod that is gone, as far as its events show.
type past struct {
	name string
	// seen is the time of its first and last event; the others are zero where no event has them.
	seen, placed, started, ended time.Time
	end                          string
}

// earlier are the pods that members had before those of now, by name, the earliest first.
func earlier(g *gang.Gang, events []*corev1.Event) map[string][]*past {
	present := map[types.UID]bool{}
	for _, pod := range g.ExistingPods() {
		present[pod.UID] = true
	}
	gone := map[types.UID]*past{}
	for _, e := range events {
		o := e.InvolvedObject
		if o.Kind != "Pod" || o.UID == "" || present[o.UID] {
			continue
		}
		p := gone[o.UID]
		if p == nil {
			p = &past{name: o.Name, seen: occurrence.First(e)}
			gone[o.UID] = p
		}
		p.learn(e)
	}
	byName := map[string][]*past{}
	for _, p := range gone {
		byName[p.name] = append(byName[p.name], p)
	}
	for _, list := range byName {
		slices.SortFunc(list, func(a, b *past) int { return cmp.Or(a.seen.Compare(b.seen), a.ended.Compare(b.ended)) })
	}
	return byName
}

// learn takes what an event reports. They come in the order in which they happened last.
func (p *past) learn(e *corev1.Event) {
	first, last := occurrence.First(e), occurrence.Last(e)
	if first.Before(p.seen) {
		p.seen = first
	}
	p.ended = last
	switch e.Reason {
	case "Scheduled":
		p.placed = first
	case "Started":
		p.started = last
	case "Killing", "Preempted", "Evicted", "Failed", "BackOff", "TaintManagerEviction":
		p.end = gang.Explained(e.Reason, e.Message)
	}
}

// past adds a pod that is gone.
func (d *draft) past(p *past) {
	d.phase(Absent, p.seen, false)
	to := p.ended
	switch {
	case !p.started.IsZero():
		d.phase(Pending, p.placed, false)
		d.phase(Starting, p.started, false)
		d.phase(Running, to, false)
	case !p.placed.IsZero():
		d.phase(Pending, p.placed, false)
		d.phase(Starting, to, false)
	default:
		d.phase(Pending, to, false)
	}
	note := "an earlier pod, known from its events only"
	if p.end != "" {
		note += "; " + p.end
	}
	d.mark(Replaced, to, note)
	d.lane.Restarts++
}

// podName is the name that the member's pod has or would have; empty where names are random.
func podName(g *gang.Gang, m gang.Member) string {
	if m.Pod != nil {
		return m.Pod.Name
	}
	return g.PodName(m)
}
