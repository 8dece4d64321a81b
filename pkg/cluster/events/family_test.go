package events

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
)

// Events about a job are told by its name, too: those of a Job of Volcano are not those of a Job of Kubernetes that has its name.
func TestEventsOfAJob(t *testing.T) {
	created := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	reader, known := kinds.ByKind(batchjob.GroupKind())
	if !known {
		t.Fatal("no reader of Jobs")
	}
	family := NewFamily(&gang.Job{
		Kind: batchjob.GroupKind().WithVersion("v1"), Reader: reader,
		Meta: metav1.ObjectMeta{Namespace: "team", Name: "llama", UID: "uid-llama", CreationTimestamp: metav1.NewTime(created)},
	}, nil)
	for name, c := range map[string]struct {
		about corev1.ObjectReference
		after time.Duration
		want  bool
	}{
		"by its UID":              {corev1.ObjectReference{Kind: "Job", UID: "uid-llama"}, -time.Hour, true},
		"by its name":             {corev1.ObjectReference{Kind: "Job", APIVersion: "batch/v1", Name: "llama"}, time.Minute, true},
		"without a group":         {corev1.ObjectReference{Kind: "Job", Name: "llama"}, time.Minute, true},
		"of Volcano":              {corev1.ObjectReference{Kind: "Job", APIVersion: "batch.volcano.sh/v1alpha1", Name: "llama"}, time.Minute, false},
		"another of its name":     {corev1.ObjectReference{Kind: "Job", APIVersion: "batch/v1", Name: "llama", UID: "uid-before"}, time.Minute, false},
		"before it was created":   {corev1.ObjectReference{Kind: "Job", APIVersion: "batch/v1", Name: "llama"}, -time.Minute, false},
		"a pod that is gone":      {corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Name: "llama-x7k2p"}, time.Minute, true},
		"a pod of another":        {corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Name: "llama-eval-x7k2p"}, time.Minute, false},
		"its PodGroup":            {corev1.ObjectReference{Kind: "PodGroup", Name: "llama"}, time.Minute, true},
		"its Workload":            {corev1.ObjectReference{Kind: "Workload", Name: "job-llama-1a2b3"}, time.Minute, true},
		"the Workload of another": {corev1.ObjectReference{Kind: "Workload", Name: "tfjob-llama-1a2b3"}, time.Minute, false},
	} {
		e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name}, InvolvedObject: c.about, LastTimestamp: metav1.NewTime(created.Add(c.after))}
		if got := family.Has(e); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
