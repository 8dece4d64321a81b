package history

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	jobevents "github.com/gangctl/gangctl/pkg/cluster/events"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/published"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Said is something that was said about why the gang waits.
type Said struct {
	// From and To are when it was said first and last; From is nil where that is not known.
	From *time.Time `json:"from,omitempty"`
	To   *time.Time `json:"to,omitempty"`
	// By is who said it: a scheduler, a controller.
	By string `json:"by,omitempty"`
	// About are the objects: the gang's group, or so many of its pods. Times is how often it was said.
	About []string `json:"about,omitempty"`
	Times int32    `json:"times"`
	// Code is a verdict of why-pending, or the reason of an event or a condition.
	Code string `json:"code"`
	Text string `json:"text"`
}

// scheduling are the reasons of events in which schedulers and autoscalers say why a pod waits, or what they do about it.
var scheduling = []string{"FailedScheduling", "Unschedulable", "NotTriggerScaleUp", "TriggeredScaleUp", "WaitingForGates", "SchedulingGated", "Preempted",
	"Nominated", "FailedCreate", "FailedCreatePodGroup", "Pending", "QuotaReserved", "Inadmissible", "EvictedDueToPreempted", "Suspended", "Resumed"}

// said gathers what was said so far, the earliest first: what a scheduler published, what is on the group, events, and what stands on
// pods that wait, which outlives the events.
func said(w *view.View, g *gang.Gang, family *jobevents.Family, events []*corev1.Event) []Said {
	all := []Said{}
	for _, e := range w.Snap.Events {
		if e.Name != family.Published() {
			continue
		}
		if a, err := published.Get(e); err == nil {
			all = append(all, Said{From: known(jobevents.First(e)), To: known(*a.Snapshot.At), By: jobevents.By(e), Times: 1, Code: string(a.Verdict), Text: a.Headline})
		}
	}
	if g.Decl != nil {
		for _, word := range g.Decl.Words {
			all = append(all, Said{From: known(word.At), To: known(word.At), About: []string{cmp.Or(g.Decl.Kind.Kind, "gang") + "/" + g.Decl.Key.Name}, Times: 1,
				Code: word.Reason, Text: word.Message})
		}
	}
	for _, e := range events {
		kind := e.InvolvedObject.Kind
		if !slices.Contains(scheduling, e.Reason) && kind != "PodGroup" && kind != "Workload" {
			continue
		}
		all = merge(all, e)
	}
	all = noted(all, w, g)
	slices.SortStableFunc(all, func(a, b Said) int {
		return cmp.Or(compare(a.From, b.From), compare(a.To, b.To), cmp.Compare(a.Code, b.Code))
	})
	return all
}

// merge adds an event, or counts it to one that says the same about another pod.
func merge(all []Said, e *corev1.Event) []Said {
	about, from, to := e.InvolvedObject.Kind+"/"+e.InvolvedObject.Name, jobevents.First(e), jobevents.Last(e)
	for i := range all {
		s := &all[i]
		if s.Code != e.Reason || s.Text != e.Message || s.By != jobevents.By(e) {
			continue
		}
		s.Times += jobevents.Count(e)
		if !slices.Contains(s.About, about) {
			s.About = append(s.About, about)
		}
		if s.From == nil || from.Before(*s.From) {
			s.From = known(from)
		}
		if s.To == nil || to.After(*s.To) {
			s.To = known(to)
		}
		return all
	}
	return append(all, Said{known(from), known(to), jobevents.By(e), []string{about}, jobevents.Count(e), e.Reason, e.Message})
}

// noted adds what schedulers left on pods that have no node, with the time since when it is there. What events tell as well is not said
// a second time, but may have been said for longer.
func noted(all []Said, w *view.View, g *gang.Gang) []Said {
	for _, p := range pods(g) {
		i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Message != ""
		})
		if i < 0 || p.Spec.NodeName != "" {
			continue
		}
		c, about := p.Status.Conditions[i], "Pod/"+p.Name
		from := known(c.LastTransitionTime.Time)
		at := slices.IndexFunc(all, func(s Said) bool { return s.Text == c.Message })
		if at < 0 {
			all = append(all, Said{from, known(w.Now), p.Spec.SchedulerName, []string{about}, 1, c.Reason, c.Message})
			continue
		}
		s := &all[at]
		if !slices.Contains(s.About, about) {
			s.About = append(s.About, about)
		}
		if from != nil && s.From != nil && from.Before(*s.From) {
			s.From = from
		}
	}
	return all
}

// Event is something that happened to the job, its gang or a pod.
type Event struct {
	First   *time.Time `json:"first,omitempty"`
	Last    *time.Time `json:"last,omitempty"`
	Warning bool       `json:"warning,omitempty"`
	Object  string     `json:"object"`
	Reason  string     `json:"reason"`
	Message string     `json:"message"`
	By      string     `json:"by,omitempty"`
	Count   int32      `json:"count"`
}

func told(events []*corev1.Event) []Event {
	all := make([]Event, 0, len(events))
	for _, e := range events {
		all = append(all, Event{First: known(jobevents.First(e)), Last: known(jobevents.Last(e)), Warning: e.Type == corev1.EventTypeWarning,
			Object: e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name, Reason: e.Reason, Message: e.Message, By: jobevents.By(e), Count: jobevents.Count(e)})
	}
	return all
}
