package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/occurrence"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/yunikorn"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
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

	apiVersion string    // of the object; empty where it is not reported
	uid        types.UID // that, too
}

// Refuses reports whether a scheduler reports that it finds no place for a pod, or could not give it the one that it found. Karpenter reports in the same words that it
// adds no node.
func (e Event) Refuses() bool {
	switch e.Reason {
	case "FailedScheduling", "Unschedulable":
		return !e.ByKarpenter()
	case "PodUnschedulable": // of YuniKorn
		return true
	case "GangScheduling":
		return e.Warning
	case "Informational": // as YuniKorn calls what it reports of requests
		return slices.ContainsFunc(yunikorn.Refusals(), func(words string) bool { return strings.Contains(e.Message, words) })
	}
	return e.FailsToBind()
}

// FailsToBind reports whether a scheduler reports that it found a place for a pod and could not bind it to that, as the binder of KAI does. Volume claims have events of the same name.
func (e Event) FailsToBind() bool {
	return e.Kind == "Pod" && (e.Reason == gang.BindingError || e.Reason == failedBinding) && !e.FailsToClaim()
}

// FailsToClaim reports whether Kubernetes reports that it could not make the claim of a volume of a pod's own: a generic ephemeral one.
func (e Event) FailsToClaim() bool {
	return e.Kind == "Pod" && e.Reason == failedBinding && strings.HasPrefix(e.Message, "ephemeral volume ")
}

// failedBinding is the reason of events of volume controllers, and of the binder of KAI.
const failedBinding = "FailedBinding"

// ByKarpenter reports whether Karpenter reported it.
func (e Event) ByKarpenter() bool { return strings.HasPrefix(e.By, "karpenter") }

type eventKey struct{ kind, namespace, name string }

func (w *View) indexEvents() map[eventKey][]Event {
	if w.base != nil && slices.Equal(w.Snap.Events, w.base.Snap.Events) {
		return w.base.events()
	}
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
	return Event{
		Kind: key.kind, Namespace: key.namespace, Name: key.name, Warning: e.Type == corev1.EventTypeWarning, Reason: e.Reason,
		Message: e.Message, Field: e.InvolvedObject.FieldPath, apiVersion: e.InvolvedObject.APIVersion, uid: e.InvolvedObject.UID, By: occurrence.By(e),
		First: occurrence.First(e), Last: occurrence.Last(e), Count: occurrence.Count(e),
	}
}

// Later is the later of two moments.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// EventsNamed are the messages about all objects that had a name, the latest first: of one that is not read, and of those before it.
func (w *View) EventsNamed(kind schema.GroupKind, namespace, name string) []Event {
	return w.EventsAbout(kind, &metav1.ObjectMeta{Namespace: namespace, Name: name})
}

// EventsAbout are the messages about an object, the latest first: not about one of its name that another API group has, as Volcano has a Job, nor about an earlier one.
func (w *View) EventsAbout(kind schema.GroupKind, o metav1.Object) []Event {
	all := w.events()[eventKey{kind.Kind, o.GetNamespace(), o.GetName()}]
	another := func(e Event) bool {
		switch {
		case e.apiVersion != "" && schema.FromAPIVersionAndKind(e.apiVersion, kind.Kind).Group != kind.Group:
			return true
		case e.uid != "" && o.GetUID() != "" && !strings.HasPrefix(string(o.GetUID()), madeUp):
			return e.uid != o.GetUID()
		}
		return e.Last.Before(o.GetCreationTimestamp().Time)
	}
	if !slices.ContainsFunc(all, another) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), another)
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
	own := w.EventsAbout(s.Kind.GroupKind(), &s.Meta)
	all := slices.Clip(own)
	for _, u := range made {
		all = append(all, w.EventsAbout(u.GroupVersionKind().GroupKind(), u)...)
	}
	for _, part := range parts {
		all = append(all, w.EventsAbout(batchjob.GroupKind(), w.batchJobs().all[part])...)
	}
	if s.Kind.GroupKind() == leaderworkerset.Reader().GroupKind { // its StatefulSets, which have the names of the job and of the leaders
		all = append(all, w.EventsNamed(statefulSet(), s.Meta.Namespace, s.Meta.Name)...)
		for _, p := range w.podsOf(s) {
			all = append(all, w.EventsNamed(statefulSet(), p.Namespace, p.Name)...)
		}
	}
	if m := s.Maker; m != nil {
		all = append(all, w.EventsNamed(m.Controller.Kind, s.Meta.Namespace, m.Controller.Name)...)
		if m.Kind != m.Controller.Kind {
			all = append(all, w.EventsNamed(m.Kind, s.Meta.Namespace, m.Name)...)
		}
	}
	if len(all) == len(own) {
		return own
	}
	slices.SortStableFunc(all, func(a, b Event) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	return all
}

// EventsOfPod are the messages about a pod, the latest first.
func (w *View) EventsOfPod(p *corev1.Pod) []Event {
	return w.EventsAbout(podKind(), p)
}

// EventsOfMember are the messages about the pods that a member of a job had one after the other, which all have its name, the latest first: not those about an earlier job. What no job
// owns has nothing that is older than its pods, so that all of the name count.
func (w *View) EventsOfMember(job *gang.Job, pod string) []Event {
	all := w.EventsNamed(podKind(), job.Meta.Namespace, pod)
	if job.Bare != nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(e Event) bool { return e.Last.Before(job.Meta.CreationTimestamp.Time) })
}

// GroupEvents are the messages about the object that declares a gang, the latest first; none where it is declared without one.
func (w *View) GroupEvents(d *gang.Declaration) []Event {
	kind := d.Kind.GroupKind()
	if u := w.Object(kind, d.Key.Namespace, d.Key.Name); u != nil {
		return w.EventsAbout(kind, u)
	}
	return w.EventsNamed(kind, d.Key.Namespace, d.Key.Name)
}

// PodEvents are the messages about the present pods of a gang, the latest first.
func (w *View) PodEvents(g *gang.Gang) []Event {
	var all []Event
	for _, m := range g.Members {
		if m.Pod != nil {
			all = append(all, w.EventsOfPod(m.Pod)...)
		}
	}
	slices.SortStableFunc(all, latestFirst)
	return all
}

func latestFirst(a, b Event) int { return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Name, b.Name)) }
