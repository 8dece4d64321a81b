package batchjob

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/gang"
)

// A Job that Kueue may admit in part needs as many members as Kueue leaves it at least. What is not below all of them means all.
func TestMinimumOfAPartlyAdmittedJob(t *testing.T) {
	for text, want := range map[string]int32{"5": 5, "8": 0, "9": 0, "0": 0, "-1": 0, "five": 0, "99999999999": 0, "": 0} {
		j := &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: new(int32(8))}}
		j.Annotations = map[string]string{MinParallelism: text}
		job := Convert(j)
		if got := job.MinMember; (got == nil) != (want == 0) || got != nil && *got != want {
			t.Errorf("%q: got %v, want %d", text, got, want)
		}
	}
}

// A Job that states a gang needs its minimum, which is all of it where it names none.
func TestMinimumOfAStatedGang(t *testing.T) {
	for count, want := range map[*int32]int32{nil: 4, new(int32(3)): 3, new(int32(9)): 4} {
		j := &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: new(int32(4))}}
		if convert := Convert(j); convert.Elastic != nil {
			t.Fatalf("states none: %d", *convert.Elastic)
		}
		j.Spec.Scheduling = &batchv1.JobSchedulingConfiguration{SchedulingPolicy: &schedulingv1alpha3.WorkloadPodGroupSchedulingPolicy{Gang: &schedulingv1alpha3.WorkloadPodGroupGangSchedulingPolicy{MinCount: count}}}
		if got := Convert(j).Elastic; got == nil || *got != want {
			t.Errorf("got %d, want %d", ptr.Deref(got, 0), want)
		}
	}
}

// A Job that is left to another controller than Kubernetes' own may run in another cluster: its status has how many members do.
func TestJobLeftToAnotherController(t *testing.T) {
	for by, want := range map[string]string{"": "", batchv1.JobControllerName: "", "kueue.x-k8s.io/multikueue": "kueue.x-k8s.io/multikueue"} {
		j := &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: new(int32(2))}, Status: batchv1.JobStatus{Ready: new(int32(2))}}
		if by != "" {
			j.Spec.ManagedBy = &by
		}
		g := gang.New(new(Convert(j)), nil, nil, func(*gang.Job, []gang.Member) gang.Declared { return gang.Declared{} }, nil)
		if g.LeftTo != want || g.Up() != (want != "") || (gang.StateOf(g, time.Time{}) == gang.Running) != (want != "") {
			t.Errorf("%q: left to %q, up: %v, %s", by, g.LeftTo, g.Up(), gang.StateOf(g, time.Time{}))
		}
	}
}

// A Job that runs has as many members as are left to complete; one that has succeeded has those that it had.
func TestMembersOfAJobThatSucceeded(t *testing.T) {
	j := &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: new(int32(2)), Completions: new(int32(2))}, Status: batchv1.JobStatus{Succeeded: 1}}
	if got := Convert(j).Roles[0].Replicas; got != 1 {
		t.Errorf("it runs: got %d", got)
	}
	j.Status.Succeeded = 2
	j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	if got := Convert(j).Roles[0].Replicas; got != 2 {
		t.Errorf("it has succeeded: got %d", got)
	}
}

// How a Job ends is decided before its last pods have ended; what it reports then counts.
func TestEnd(t *testing.T) {
	conditions := func(kinds ...batchv1.JobConditionType) *gang.End {
		j := &batchv1.Job{}
		for _, kind := range kinds {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: string(kind)})
		}
		return Convert(j).End
	}
	for _, r := range []struct {
		kinds  []batchv1.JobConditionType
		failed bool
		reason batchv1.JobConditionType
	}{
		{[]batchv1.JobConditionType{batchv1.JobFailureTarget}, true, batchv1.JobFailureTarget},
		{[]batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed}, true, batchv1.JobFailed},
		{[]batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet}, false, batchv1.JobSuccessCriteriaMet},
		{[]batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete}, false, batchv1.JobComplete},
	} {
		if end := conditions(r.kinds...); end == nil || end.Failed != r.failed || end.Reason != string(r.reason) {
			t.Errorf("%v: got %+v", r.kinds, end)
		}
	}
	if end := conditions(batchv1.JobSuspended); end != nil {
		t.Errorf("a suspended Job has ended: %+v", end)
	}
}
