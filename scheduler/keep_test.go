package scheduler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/scheduler/suspend"
)

// A Job keeps its ended pods while it is suspended, and would wait for them for
// ever. The Training Operator deletes them, too.
func TestWhichPodsAJobWaitsFor(t *testing.T) {
	yes := true
	pod := func(apiVersion, kind string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: apiVersion, Kind: kind, Name: "j", UID: "uid", Controller: &yes},
		}}}
	}
	for _, c := range []struct {
		name      string
		pod       *corev1.Pod
		ended     bool
		waits     bool
		elsewhere bool // the pod is another job's
	}{
		{"a Job, for one that is there", pod("batch/v1", "Job"), false, true, false},
		{"a Job, for one that has ended", pod("batch/v1", "Job"), true, false, false},
		{"a TFJob, for one that is there", pod("kubeflow.org/v1", "TFJob"), false, true, false},
		{"a TFJob, for one that has ended", pod("kubeflow.org/v1", "TFJob"), true, true, false},
		{"a TFJob, for another's", pod("kubeflow.org/v1", "TFJob"), false, false, true},
	} {
		r := newRig(t)
		job, ok := suspend.Of(c.pod)
		if !ok {
			t.Fatalf("%s: no job", c.name)
		}
		if c.elsewhere {
			job.UID = "other"
		}
		store := r.pods.live.GetStore()
		if c.ended {
			store = r.pods.ended.GetStore()
		}
		r.must(store.Add(c.pod))
		if got := r.pods.owned(job); got != c.waits {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
