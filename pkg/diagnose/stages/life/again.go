package life

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

const (
	// againAndAgain is how many evictions of a gang are more than chance.
	againAndAgain = 3
	// recently is for how long after the last of them others are expected.
	recently = time.Hour
)

// evictions are how often a gang was evicted, as one source shows it, within what time, and how that is reported.
type evictions struct {
	n           int32
	first, last time.Time
	how         string
}

// evictedAgain remarks that a gang was evicted again and again: that it starts then is not all.
func evictedAgain(c *stage.Context, out *stage.Result) {
	e := ofPods(c)
	for _, other := range []evictions{ofFailed(c), ofWorkload(c)} {
		if other.n > e.n {
			e = other
		}
	}
	if e.n < againAndAgain || c.Gang.End != nil || !e.last.IsZero() && c.View.Age(e.last) > recently {
		return
	}
	text := fmt.Sprintf("it was evicted %d times", e.n)
	if !e.first.IsZero() && e.last.After(e.first) {
		text += fmt.Sprintf(" in %s, last %s ago", phrase.Age(e.last.Sub(e.first)), phrase.Age(c.View.Age(e.last)))
	}
	out.Note("%s (%s): it may be again, unless the reason for that goes", text, e.how)
}

// add counts events that report an eviction.
func (e *evictions) add(all []view.Event) {
	for _, x := range all {
		if !slices.Contains(evicting, x.Reason) && !strings.Contains(x.By, descheduler) {
			continue
		}
		if e.n = gang.Sum(e.n, x.Count); e.how == "" {
			e.how, e.last = x.Message, x.Last
		}
		if e.first.IsZero() || x.First.Before(e.first) {
			e.first = x.First
		}
	}
}

// evicting are the reasons of events that report an eviction. The descheduler has the name of its strategy there.
var evicting = []string{"Preempted", "Evicted", "Evict", "TaintManagerEviction"}

const descheduler = "descheduler"

// ofGroup are those that the scheduler reports of the group object, one for each of its pods.
func ofGroup(c *stage.Context) (e evictions) {
	if d := c.Gang.Decl; d != nil && d.Kind.Kind != "" {
		e.add(c.View.GroupEvents(d))
	}
	return e
}

// ofPods are those of the member that was evicted most often, where its pods have one name.
func ofPods(c *stage.Context) (most evictions) {
	for _, m := range c.Gang.Members {
		if m.Pod == nil {
			continue
		}
		var e evictions
		if e.add(c.View.EventsOfMember(c.Gang.Job, m.Pod.Name)); e.n > most.n {
			most = e
		}
	}
	return most
}

// ofFailed are those of the member that was evicted most often, where its pods stay when they have failed.
func ofFailed(c *stage.Context) (most evictions) {
	if c.Gang.Reader.RoleIndexOf == nil || c.Gang.Reader.PodName != nil {
		return most
	}
	failed := failedPods(c)
	for _, m := range c.Gang.Members {
		var e evictions
		var latest *corev1.Pod
		for _, p := range failed[gang.RoleIndex{Role: strings.ToLower(m.Role), Index: m.Index}] {
			condition := gang.Disruption(p)
			if condition == nil {
				continue
			}
			at := condition.LastTransitionTime.Time
			if e.n++; e.first.IsZero() || at.Before(e.first) {
				e.first = at
			}
			if latest == nil || at.After(e.last) {
				latest, e.last = p, at
			}
		}
		if e.n <= most.n {
			continue
		}
		reported := evictions{}
		reported.add(c.View.EventsOfPod(latest))
		e.how = cmp.Or(reported.how, gang.Disruption(latest).Message, gang.Disruption(latest).Reason)
		most = e
	}
	return most
}

// ofWorkload are those that Kueue counts.
func ofWorkload(c *stage.Context) (e evictions) {
	wl := c.View.Workload(c.Gang.Job)
	if wl == nil {
		return e
	}
	e.n, e.how = kueue.Evictions(wl)
	if why, evicted := kueue.Eviction(wl); evicted {
		e.last = why.At
	}
	return e
}
