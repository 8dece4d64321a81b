package view

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/gang"
)

// A Job of Kubernetes and one of Volcano may have one name: each has its own events, and those of which the group is not reported. So has each of two that had a name one after
// the other.
func TestEventsAbout(t *testing.T) {
	c := clustertest.New()
	for reason, apiVersion := range map[string]string{"Kubernetes": "batch/v1", "Volcano": "batch.volcano.sh/v1alpha1", "Unreported": ""} {
		c.Event("Job", "team", "gang", "x", reason, reason, time.Minute).InvolvedObject.APIVersion = apiVersion
	}
	for reason, uid := range map[string]types.UID{"Earlier": "earlier", "Own": "own"} {
		e := c.Event("Job", "team", "run", "x", reason, reason, time.Minute)
		e.InvolvedObject.UID = uid
	}
	c.Event("Job", "team", "run", "x", "Before", "Before", time.Hour)
	w := New(c.Done())
	for group, want := range map[string][]string{"batch": {"Kubernetes", "Unreported"}, "batch.volcano.sh": {"Unreported", "Volcano"}} {
		var got []string
		for _, e := range w.EventsAbout(schema.GroupKind{Group: group, Kind: "Job"}, &metav1.ObjectMeta{Namespace: "team", Name: "gang"}) {
			got = append(got, e.Reason)
		}
		if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("%s: got %v, want %v", group, got, want)
		}
	}
	run := &metav1.ObjectMeta{Namespace: "team", Name: "run", UID: "own", CreationTimestamp: clustertest.Ago(2 * time.Minute)}
	if got := w.EventsAbout(schema.GroupKind{Group: "batch", Kind: "Job"}, run); len(got) != 1 || got[0].Reason != "Own" {
		t.Errorf("events of an earlier object of the name: got %v", got)
	}
}

// A member's pods may have one name, one after the other; those of an earlier job had it, too. Pods that no job owns had no other.
func TestEventsOfMember(t *testing.T) {
	c := clustertest.New()
	for reason, ago := range map[string]time.Duration{"Earlier": time.Hour, "Now": time.Minute} {
		c.Event("Pod", "team", "gang-0", "x", reason, reason, ago).InvolvedObject.UID = types.UID(reason)
	}
	w := New(c.Done())
	for name, job := range map[string]*gang.Job{"Now": {}, "Now Earlier": {Bare: []*corev1.Pod{}}} {
		job.Meta = metav1.ObjectMeta{Namespace: "team", Name: "gang", CreationTimestamp: clustertest.Ago(10 * time.Minute)}
		var got []string
		for _, e := range w.EventsOfMember(job, "gang-0") {
			got = append(got, e.Reason)
		}
		if strings.Join(got, " ") != name {
			t.Errorf("got %q, want %q", got, name)
		}
	}
}

// What a scheduler reported of an earlier PodGroup of the name is not about this one.
func TestGroupEvents(t *testing.T) {
	c := clustertest.New().Nodes(1, 8).Add(clustertest.Gang{Namespace: "team", Name: "gang", Workers: 1, GPUs: 8, Age: time.Minute})
	c.Event("PodGroup", "team", "gang", clustertest.Scheduler, "Scheduled", "of an earlier one", 30*time.Second).InvolvedObject.UID = "earlier"
	c.Event("PodGroup", "team", "gang", clustertest.Scheduler, "Unschedulable", "before it was made", time.Hour)
	c.Event("PodGroup", "team", "gang", clustertest.Scheduler, "Unschedulable", "of this one", 10*time.Second)
	w := New(c.Done())
	if got := w.GroupEvents(w.Gang(w.Jobs()[0]).Decl); len(got) != 1 || got[0].Message != "of this one" {
		t.Errorf("got %+v", got)
	}
}
