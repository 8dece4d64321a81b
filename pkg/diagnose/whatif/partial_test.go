package whatif

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
)

// The minimum of a Job that Kueue may admit in part is in its annotation, which Kueue refuses on one that needs all of its pods.
func TestMinimumOfPartialAdmission(t *testing.T) {
	for name, test := range map[string]struct {
		min, members int32
		op, after    string
	}{
		"as it was":      {3, 4, "", "3"},
		"a lower one":    {2, 4, "replace", "2"},
		"more members":   {6, 8, "replace", "6"},
		"all of them":    {4, 4, "remove", ""},
		"fewer than had": {2, 2, "remove", ""},
	} {
		t.Run(name, func(t *testing.T) {
			j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{batchjob.MinParallelism: "3"}}}
			g := &gang.Gang{Job: &gang.Job{Kind: batchv1.SchemeGroupVersion.WithKind("Job"), MinMember: new(int32(3)), Roles: []gang.Role{{Name: "worker", Replicas: 4}}}}
			spec := &Spec{Roles: []gang.Role{{Name: "worker", Replicas: test.members}}, Min: test.min}
			steps, op := partialSteps(g, spec), ""
			if len(steps) == 1 {
				op = steps[0].Op
			}
			if op != test.op {
				t.Errorf("%v, want %q", steps, test.op)
			}
			before := j.Annotations
			admitInPart(j, g, spec)
			if got := j.Annotations[batchjob.MinParallelism]; got != test.after || before[batchjob.MinParallelism] != "3" {
				t.Errorf("the annotation is %q, want %q; the Job that it was has %v", got, test.after, before)
			}
		})
	}
}
