package history_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/historytest"
)

// The condition that a scheduler left on pods is still reported when its events have expired, with the time since when it is there; while
// they are there, it is reported once.
func TestMessagesWithoutEvents(t *testing.T) {
	s := historytest.Pending()
	s.Events = nil
	r := build(t, s)
	if len(r.Messages) != 1 {
		t.Fatalf("got %+v", r.Messages)
	}
	got := r.Messages[0]
	if got.Code != corev1.PodReasonUnschedulable || len(got.About) != 4 || got.From == nil || !got.From.Equal(clustertest.Now.Add(-24*time.Minute)) || !got.To.Equal(clustertest.Now) || got.By == "" {
		t.Errorf("got %+v", got)
	}
	s = historytest.Pending()
	before := len(build(t, s).Messages)
	for _, p := range s.Pods {
		if p.Name == historytest.Job+"-worker-3" {
			p.Status.Conditions[0].LastTransitionTime = clustertest.Ago(time.Hour)
		}
	}
	r = build(t, s)
	if len(r.Messages) != before || !r.Messages[0].From.Equal(clustertest.Now.Add(-time.Hour)) {
		t.Errorf("got %+v", r.Messages)
	}
}
