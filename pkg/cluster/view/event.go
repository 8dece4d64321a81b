package view

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
)

// Event is a message about an object, however it is encoded.
type Event struct {
	Kind, Namespace, Name string
	// Warning is true for the type Warning.
	Warning         bool
	Reason, Message string
	// By is the component that reported it.
	By string
	// Field is the part of the object that it is about, such as spec.containers{main}; empty if it is about all of it.
	Field       string
	First, Last time.Time
	Count       int32
}

type eventKey struct{ kind, namespace, name string }

func (w *View) indexEvents() map[eventKey][]Event {
	index := map[eventKey][]Event{}
	for _, e := range w.Snap.Events {
		key := eventKey{e.InvolvedObject.Kind, cmp.Or(e.InvolvedObject.Namespace, e.Namespace), e.InvolvedObject.Name}
		if key.kind == "Node" {
			key.namespace = ""
		}
		index[key] = append(index[key], convert(key, e))
	}
	for _, list := range index {
		slices.SortStableFunc(list, func(a, b Event) int {
			return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
		})
	}
	return index
}

func convert(key eventKey, e *corev1.Event) Event {
	out := Event{
		Kind: key.kind, Namespace: key.namespace, Name: key.name, Warning: e.Type == corev1.EventTypeWarning, Reason: e.Reason,
		Message: e.Message, Field: e.InvolvedObject.FieldPath, By: cmp.Or(e.ReportingController, e.Source.Component), Count: max(1, e.Count),
		First: e.FirstTimestamp.Time, Last: e.LastTimestamp.Time,
	}
	if out.First.IsZero() {
		out.First = cmpTime(e.EventTime.Time, e.CreationTimestamp.Time)
	}
	if e.Series != nil {
		out.Count = max(out.Count, e.Series.Count)
		out.Last = Later(out.Last, e.Series.LastObservedTime.Time)
	}
	out.Last = Later(out.Last, out.First)
	return out
}

func cmpTime(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return a
}

// Later is the later of two moments.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Events are the messages about an object, the latest first.
func (w *View) Events(kind, namespace, name string) []Event {
	return w.events()[eventKey{kind, namespace, name}]
}

// EventsOf are the messages about all objects of a kind, the latest first.
func (w *View) EventsOf(kind string) []Event {
	type eventsOf struct{ kind string }
	return Once(w, eventsOf{kind}, func() (all []Event) {
		for key, events := range w.events() {
			if key.kind == kind {
				all = append(all, events...)
			}
		}
		slices.SortFunc(all, func(a, b Event) int {
			return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
		})
		return all
	})
}

// MakerEvents are the messages about a job and about the objects through which its pods are made, the latest first: it is a RayJob's RayCluster, a
// JobSet's Jobs, the StatefulSets of a LeaderWorkerSet and the ReplicaSets of a Deployment whose pods the API server refuses.
func (w *View) MakerEvents(s *gang.Job) []Event {
	made, parts := w.makers(s)
	var makers []eventKey
	for _, u := range made {
		makers = append(makers, eventKey{u.GetKind(), u.GetNamespace(), u.GetName()})
	}
	for _, part := range parts {
		makers = append(makers, eventKey{"Job", part.Namespace, w.batchJobs().all[part].Name})
	}
	if s.Kind.GroupKind() == leaderworkerset.Reader().GroupKind { // its StatefulSets, which have the names of the job and of the leaders
		makers = append(makers, eventKey{"StatefulSet", s.Meta.Namespace, s.Meta.Name})
		for _, p := range w.podsOf(s) {
			makers = append(makers, eventKey{"StatefulSet", p.Namespace, p.Name})
		}
	}
	if m := s.Maker; m != nil {
		makers = append(makers, eventKey{m.Controller.Kind.Kind, s.Meta.Namespace, m.Controller.Name})
		if m.Kind != m.Controller.Kind {
			makers = append(makers, eventKey{m.Kind.Kind, s.Meta.Namespace, m.Name})
		}
	}
	own := w.Events(s.Kind.Kind, s.Meta.Namespace, s.Meta.Name)
	if len(makers) == 0 {
		return own
	}
	all := slices.Clone(own)
	for _, maker := range makers {
		all = append(all, w.events()[maker]...)
	}
	slices.SortStableFunc(all, func(a, b Event) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	return all
}

// PodEvents are the messages about the present pods of a gang, the latest first. Those about an earlier pod of the
// same name is left out.
func (w *View) PodEvents(g *gang.Gang) []Event {
	var all []Event
	for _, m := range g.Members {
		if m.Pod == nil {
			continue
		}
		for _, e := range w.Events("Pod", m.Pod.Namespace, m.Pod.Name) {
			if !e.Last.Before(m.Pod.CreationTimestamp.Time) {
				all = append(all, e)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Event) int { return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Name, b.Name)) })
	return all
}
