package history

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	jobevents "github.com/gangctl/gangctl/pkg/cluster/events"
	"github.com/gangctl/gangctl/pkg/cluster/occurrence"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Message is why the gang waited, as an event or a condition reported it.
type Message struct {
	// From and To are when it was reported first and last; From is nil where that is not known.
	From *time.Time `json:"from,omitempty"`
	To   *time.Time `json:"to,omitempty"`
	// By is who reported it: a scheduler, a controller.
	By string `json:"by,omitempty"`
	// About are the objects: the gang's group, or so many of its pods. Times is how often it was reported.
	About []string `json:"about,omitempty"`
	Times int32    `json:"times"`
	// Code is a verdict of why-pending, or the reason of an event or a condition.
	Code string `json:"code"`
	Text string `json:"text"`
}

// scheduling are the reasons of events in which schedulers and autoscalers report why a pod waits, or what they do about it.
var scheduling = []string{"FailedScheduling", "Unschedulable", "NotTriggerScaleUp", "TriggeredScaleUp", "FailedScaleUp", "WaitingForGates", "SchedulingGated", "Preempted",
	"Nominated", "FailedCreate", "FailedCreatePodGroup", "Pending", "QuotaReserved", "Inadmissible", "EvictedDueToPreempted", "Suspended", "Resumed"}

// messages gathers them, the earliest first: what a scheduler published, conditions of the group, events, and conditions of
// pods that wait, which outlive the events.
func messages(w *view.View, g *gang.Gang, family *jobevents.Family, events []*corev1.Event) []Message {
	all := []Message{}
	for _, e := range w.Snap.Events {
		if e.Name == family.Published() {
			all = merge(all, e) // its note: whoever may write events may have written it, as all others
		}
	}
	if g.Decl != nil {
		for _, condition := range g.Decl.Conditions {
			all = append(all, Message{From: known(condition.At), To: known(condition.At), About: []string{cmp.Or(g.Decl.Kind.Kind, "gang") + "/" + g.Decl.Key.Name}, Times: 1,
				Code: condition.Reason, Text: condition.Message})
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
	slices.SortStableFunc(all, func(a, b Message) int {
		return cmp.Or(compare(a.From, b.From), compare(a.To, b.To), cmp.Compare(a.Code, b.Code))
	})
	return all
}

// merge adds an event, or counts it to one with the same message about another pod.
func merge(all []Message, e *corev1.Event) []Message {
	about, from, to := e.InvolvedObject.Kind+"/"+e.InvolvedObject.Name, occurrence.First(e), occurrence.Last(e)
	for i := range all {
		s := &all[i]
		if s.Code != e.Reason || s.Text != e.Message || s.By != occurrence.By(e) {
			continue
		}
		s.Times += occurrence.Count(e)
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
	return append(all, Message{known(from), known(to), occurrence.By(e), []string{about}, occurrence.Count(e), e.Reason, e.Message})
}

// noted adds what schedulers left on pods that have no node, with the time since when it is there. A condition that an event
// repeats is one message, since the earlier of the two.
func noted(all []Message, w *view.View, g *gang.Gang) []Message {
	for _, p := range g.ExistingPods() {
		c, about := gang.Refusal(p), "Pod/"+p.Name
		if c == nil || c.Message == "" || p.Spec.NodeName != "" {
			continue
		}
		from := known(c.LastTransitionTime.Time)
		at := slices.IndexFunc(all, func(s Message) bool { return s.Text == c.Message })
		if at < 0 {
			all = append(all, Message{from, known(w.Now), p.Spec.SchedulerName, []string{about}, 1, c.Reason, c.Message})
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
