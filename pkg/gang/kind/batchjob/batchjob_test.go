package batchjob

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
)

// A Job that Kueue may admit in part needs as many members as Kueue leaves it at least. What is not below all of them means all.
func TestMinimumOfAPartlyAdmittedJob(t *testing.T) {
	for text, want := range map[string]int32{"5": 5, "8": 0, "9": 0, "0": 0, "-1": 0, "five": 0, "99999999999": 0, "": 0} {
		j := &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: new(int32(8))}}
		j.Annotations = map[string]string{minParallelism: text}
		job := Convert(j)
		if got := job.MinMember; (got == nil) != (want == 0) || got != nil && *got != want {
			t.Errorf("%q: got %v, want %d", text, got, want)
		}
	}
}
