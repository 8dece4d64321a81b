package summary

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
)

// A Job whose gang lacks members for good is as degraded in a list as in the explanation.
func TestFailedForGood(t *testing.T) {
	job := func(labels map[string]string) *batchv1.Job {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "llama", Namespace: "research", UID: "uid-1"}, Status: batchv1.JobStatus{FailedIndexes: ptr.To("1")}}
		j.Spec.Parallelism, j.Spec.Completions, j.Spec.BackoffLimitPerIndex, j.Spec.CompletionMode = ptr.To[int32](2), ptr.To[int32](2), ptr.To[int32](0), ptr.To(batchv1.IndexedCompletion)
		j.Spec.Template.Labels, j.Spec.Template.Spec.Containers = labels, []corev1.Container{{Name: "main"}}
		return j
	}
	first := makePod("worker", "0", running)
	first.Labels = map[string]string{batchv1.JobCompletionIndexAnnotation: "0"}
	for want, labels := range map[string]map[string]string{
		"Degraded 1/1 of its indexes 1 failed for good": {"scheduling.x-k8s.io/pod-group": "llama"},
		"Running 1/1 ": nil,
	} {
		one := batchjob.Convert(job(labels))
		s := Of(&one, []*corev1.Pod{first}, time.Time{})
		if got := fmt.Sprintf("%s %d/%d %s", s.State, s.Ready, s.Total, s.Reason); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
