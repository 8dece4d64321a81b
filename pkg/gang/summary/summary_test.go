package summary

import (
	"fmt"
	"testing"
	"time"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
)

// A line of which only the beginning is seen begins with what differs between gangs.
func TestBrief(t *testing.T) {
	const own = "0/2 nodes are available: 1 of the 2 members that its gang needs fit: 2 of 8 GPUs are free."
	const brief = "2 of 8 GPUs are free (1 of the 2 members that its gang needs fit)"
	for want, pods := range map[string][]*corev1.Pod{
		brief:                {makePod("ps", "0", unschedulable(own)), makePod("worker", "0", unschedulable(own))},
		"worker-0: " + brief: {makePod("ps", "0"), makePod("worker", "0", unschedulable(own))},
		"no pods yet":        nil,
		"":                   {makePod("ps", "0", running), makePod("worker", "0", running)},
	} {
		s := of(t, makeJob(1), pods)
		if got := s.Brief(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSummarize(t *testing.T) {
	const short = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu"
	const own = "0/2 nodes are available: 1 of the 2 members that its gang needs fit: 2 of 8 GPUs are free."
	const more = "0/2 nodes are available: its gang has its minimum, with 2 members placed, and there is no room for more: no GPU is free."
	const cut = "0/2 nodes are available: the search for room for the 2 members that its gang needs was cut off: no placement found for all members within 200ms; there may be one."
	isRunning := withCondition(kubeflowv1.JobRunning, corev1.ConditionTrue, "")
	tests := []struct {
		name string
		job  *kubeflowv1.TFJob
		pods []*corev1.Pod
		want string // STATE READY BOUND REASON
	}{
		{"fresh", makeJob(2), nil, "Pending 0/3 0 no pods yet"},
		{"whole gang waits", makeJob(2), []*corev1.Pod{makePod("ps", "0", unschedulable(short)), makePod("worker", "0", unschedulable(short)), makePod("worker", "1", unschedulable(short))},
			"Pending 0/3 0 " + short},
		{"the gang scheduler's own message", makeJob(1), []*corev1.Pod{makePod("ps", "0", unschedulable(own)), makePod("worker", "0", unschedulable(own))},
			"Pending 0/2 0 1 of the 2 members that its gang needs fit: 2 of 8 GPUs are free"},
		{"in the middle of a resize", makeJob(1, suspended, func(job *kubeflowv1.TFJob) { job.Annotations = map[string]string{provenance.ResizeAnnotation: "{}"} }), nil,
			"Suspended 0/2 0 in the middle of a resize: complete it with gangctl resize tfjob/llama -n research"},
		{"the gang scheduler has not reported it of all", makeJob(1), []*corev1.Pod{makePod("ps", "0"), makePod("worker", "0", unschedulable(own))},
			"Pending 0/2 0 worker-0: 1 of the 2 members that its gang needs fit: 2 of 8 GPUs are free"},
		{"the gang scheduler did not end its search", makeJob(1), []*corev1.Pod{makePod("ps", "0"), makePod("worker", "0", unschedulable(cut))},
			"Pending 0/2 0 worker-0: the search for room for the 2 members that its gang needs was cut off: no placement found for all members within 200ms; there may be one"},
		{"above its minimum", makeJob(2, withMin(2)), []*corev1.Pod{makePod("ps", "0", running), makePod("worker", "0", running), makePod("worker", "1", unschedulable(more))},
			"Running 2/3 2 worker-1: its gang has its minimum, with 2 members placed, and there is no room for more: no GPU is free"},
		{"the scheduler is clearest about one", makeJob(2), []*corev1.Pod{makePod("ps", "0", unschedulable("gang cannot start")), makePod("worker", "0"), makePod("worker", "1", unschedulable(short))},
			"Pending 0/3 0 worker-1: " + short},
		{"the scheduler is not clear", makeJob(1), []*corev1.Pod{makePod("ps", "0", unschedulable("gang cannot start")), makePod("worker", "0")},
			"Pending 0/2 0 ps-0: gang cannot start"},
		{"scheduler is silent", makeJob(1), []*corev1.Pod{makePod("ps", "0"), makePod("worker", "0")},
			`Pending 0/2 0 no message from scheduler "gang-scheduler" yet`},
		{"being bound", makeJob(1), []*corev1.Pod{makePod("ps", "0", bound), makePod("worker", "0")},
			`Starting 0/2 1 worker-0: no message from scheduler "gang-scheduler" yet`},
		{"the first runs, the last is being bound", makeJob(1), []*corev1.Pod{makePod("ps", "0", running), makePod("worker", "0")},
			`Starting 1/2 1 worker-0: no message from scheduler "gang-scheduler" yet`},
		{"all bound", makeJob(1), []*corev1.Pod{makePod("ps", "0", running), makePod("worker", "0", waiting("ContainerCreating", "", 0))},
			"Starting 1/2 2 worker-0: ContainerCreating"},
		{"image", makeJob(1), []*corev1.Pod{makePod("ps", "0", bound), makePod("worker", "0", waiting("ImagePullBackOff", "no such image", 0))},
			"Starting 0/2 2 worker-0: ImagePullBackOff: no such image"},
		{"whole gang runs", makeJob(1, isRunning), []*corev1.Pod{makePod("ps", "0", running), makePod("worker", "0", running)}, "Running 2/2 2 "},
		{"one has ended", makeJob(1), []*corev1.Pod{makePod("ps", "0", running), makePod("worker", "0", succeeded)}, "Running 1/2 2 "},
		{"the operator reports Running, the gang is partial", makeJob(2, isRunning),
			[]*corev1.Pod{makePod("ps", "0", running), makePod("worker", "0", running), makePod("worker", "1", unschedulable(short))},
			"Degraded 2/3 2 worker-1: " + short},
		{"a member failed", makeJob(1, isRunning), []*corev1.Pod{makePod("ps", "0", running), makePod("worker", "0", failed(137))},
			"Degraded 1/2 2 worker-0: container tensorflow exited with code 137"},
		{"evicted", makeJob(1), []*corev1.Pod{makePod("ps", "0", running), makePod("worker", "0", evicted)},
			"Degraded 1/2 2 worker-0: Evicted: low on memory"},
		{"being replaced", makeJob(1), []*corev1.Pod{makePod("ps", "0", running), makePod("worker", "0", running, terminating)},
			"Degraded 1/2 2 worker-0: being deleted"},
		{"its node does not report", makeJob(1, isRunning), []*corev1.Pod{makePod("ps", "0", running), makePod("worker", "0", unreported)},
			"Degraded 1/2 2 worker-0: its node node-1 does not report, so whether it still runs is not known"},
		{"no node reports", makeJob(1, isRunning), []*corev1.Pod{makePod("ps", "0", unreported), makePod("worker", "0", unreported)},
			"Degraded 0/2 2 ps-0: its node node-1 does not report, so whether it still runs is not known"},
		{"deleted from a node that does not report", makeJob(1, isRunning), []*corev1.Pod{makePod("ps", "0", running), makePod("worker", "0", unreported, terminating)},
			"Degraded 1/2 2 worker-0: being deleted, and its node node-1 does not report that it has ended"},
		{"one above the minimum is lost", makeJob(2, withMin(2)), []*corev1.Pod{makePod("ps", "0", running), makePod("worker", "0", running), makePod("worker", "1", unreported)},
			"Degraded 2/3 3 worker-1: its node node-1 does not report, so whether it still runs is not known"},
		{"a container is not ready", makeJob(1), []*corev1.Pod{makePod("ps", "0", running), makePod("worker", "0", running, unready)}, "Starting 1/2 2 worker-0: not ready"},
		{"a readiness gate", makeJob(1), []*corev1.Pod{makePod("ps", "0", running), makePod("worker", "0", unreported, gatedReadiness)}, "Starting 1/2 2 worker-0: not ready"},
		{"crash loop", makeJob(1), []*corev1.Pod{makePod("ps", "0", running), makePod("worker", "0", waiting("CrashLoopBackOff", "back-off", 3))},
			"Degraded 1/2 2 worker-0: CrashLoopBackOff: back-off"},
		{"a pod is missing", makeJob(1), []*corev1.Pod{makePod("ps", "0", running)}, "Degraded 1/2 1 worker-0: no pod"},
		{"elastic, at its minimum", makeJob(2, withMin(2)),
			[]*corev1.Pod{makePod("ps", "0", running), makePod("worker", "0", running), makePod("worker", "1", unschedulable(short))},
			"Running 2/3 2 worker-1: " + short},
		{"failed", makeJob(1, withCondition(kubeflowv1.JobFailed, corev1.ConditionTrue, "1 Worker replica(s) failed.")),
			[]*corev1.Pod{makePod("ps", "0", running)}, "Failed 1/2 1 1 Worker replica(s) failed."},
		{"succeeded", makeJob(1, withCondition(kubeflowv1.JobRunning, corev1.ConditionFalse, ""), withCondition(kubeflowv1.JobSucceeded, corev1.ConditionTrue, "ok")),
			[]*corev1.Pod{makePod("worker", "0", succeeded)}, "Succeeded 0/2 1 "},
		{"suspended by spec", makeJob(1, suspended), nil, "Suspended 0/2 0 suspended"},
		{"in a queue of Kueue", makeJob(1, suspended, func(job *kubeflowv1.TFJob) { job.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "research"} }), nil,
			"Suspended 0/2 0 suspended by Kueue, queue research"},
		{"pods of an older job of the name", makeJob(1), []*corev1.Pod{makePod("ps", "0", running, ofOther), makePod("worker", "0", running, ofOther)},
			"Pending 0/2 0 no pods yet"},
		{"labels of v1.3, and none", makeJob(1), []*corev1.Pod{makePod("ps", "0", running, oldLabels), makePod("worker", "0", running, noLabels)}, "Running 2/2 2 "},
		{"a pod beyond the replicas", makeJob(1), []*corev1.Pod{makePod("ps", "0", running), makePod("worker", "0", running), makePod("worker", "1")}, "Running 2/2 2 "},
		{"no members", &kubeflowv1.TFJob{}, nil, "Pending 0/0 0 the job requests no members"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := of(t, tt.job, tt.pods)
			got := fmt.Sprintf("%s %d/%d %d %s", s.State, s.Ready, s.Total, s.Bound, s.Reason)
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// A container that ends again and again is no member that runs, also while it is up; one that ended once, and runs since, is not in a crash loop.
func TestCrashLoopWhileUp(t *testing.T) {
	now := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	up := func(restarts int32, ranFor, upFor time.Duration, ready bool) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			running(pod)
			if !ready {
				pod.Status.Conditions[0].Status = corev1.ConditionFalse
			}
			started := now.Add(-upFor)
			last := &corev1.ContainerStateTerminated{ExitCode: 3, StartedAt: metav1.NewTime(started.Add(-ranFor)), FinishedAt: metav1.NewTime(started)}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "tensorflow", Ready: ready, RestartCount: restarts,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(started)}}, LastTerminationState: corev1.ContainerState{Terminated: last}}}
		}
	}
	for name, tt := range map[string]struct {
		worker func(*corev1.Pod)
		want   string
	}{
		"up between two crashes":         {up(5, time.Minute, 20*time.Second, true), "Degraded 1/2 worker-0: container tensorflow is up again, and ends again and again: 5 restarts, last with exit code 3"},
		"up for longer than before":      {up(5, time.Minute, 2*time.Minute, true), "Running 2/2 "},
		"one crash long ago":             {up(1, time.Minute, time.Hour, true), "Running 2/2 "},
		"one crash, and it is not ready": {up(1, time.Minute, time.Hour, false), "Starting 1/2 worker-0: not ready"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Of(read(t, makeJob(1)), []*corev1.Pod{makePod("ps", "0", running), makePod("worker", "0", tt.worker)}, now)
			if got := fmt.Sprintf("%s %d/%d %s", s.State, s.Ready, s.Total, s.Reason); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// A job that is being deleted is that, however its members are, and names what it waits for.
func TestBeingDeleted(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC))
	for name, tt := range map[string]struct {
		finalizers []string
		want       string
	}{
		"a controller's":      {[]string{"x.example/y", "foregroundDeletion"}, "Terminating being deleted: it waits for finalizer x.example/y"},
		"Kubernetes'":         {[]string{"foregroundDeletion"}, "Terminating being deleted"},
		"more than are named": {[]string{"a/a", "b/b", "c/c", "d/d"}, "Terminating being deleted: it waits for finalizers a/a, b/b, c/c and 1 more"},
	} {
		job := makeJob(1)
		job.DeletionTimestamp, job.Finalizers = &at, tt.finalizers
		suspend := true
		job.Spec.RunPolicy.Suspend = &suspend
		if s := of(t, job, nil); string(s.State)+" "+s.Reason != tt.want {
			t.Errorf("%s: got %s %s", name, s.State, s.Reason)
		}
	}
}

// A pod that should have gone long ago is distinguished from one that has time left.
func TestOverdue(t *testing.T) {
	now := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		since time.Duration
		want  string
	}{
		{-time.Minute, "worker-0: being deleted"},
		{gang.StuckAfter, "worker-0: being deleted"},
		{time.Hour, "worker-0: being deleted, and long past its grace period"},
	} {
		leaves := func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: now.Add(-tt.since)} }
		s := Of(read(t, makeJob(1)), []*corev1.Pod{makePod("ps", "0", running), makePod("worker", "0", running, leaves)}, now)
		if s.State != gang.Degraded || s.Reason != tt.want {
			t.Errorf("%s: got %s %s", tt.since, s.State, s.Reason)
		}
	}
}

func TestSummaryOfGang(t *testing.T) {
	tests := []struct {
		name string
		job  *kubeflowv1.TFJob
		want string // DIALECT MIN/TOTAL SCHEDULER GPUS
	}{
		{"none", makeJob(4), " 5/5 gang-scheduler 8"},
		{"PodGroup", makeJob(4, withMin(3), withTemplateLabels(map[string]string{"scheduling.x-k8s.io/pod-group": "llama"})), "scheduler-plugins 3/5 gang-scheduler 8"},
		{"labels", makeJob(4, withTemplateLabels(map[string]string{"pod-group.scheduling.sigs.k8s.io/name": "llama",
			"pod-group.scheduling.sigs.k8s.io/min-available": "2"})), "labels 2/5 gang-scheduler 8"},
		{"empty", &kubeflowv1.TFJob{}, " 0/0 default-scheduler 0"},
		{"replicas left out", makeJob(1, func(j *kubeflowv1.TFJob) { j.Spec.TFReplicaSpecs["worker"].Replicas = nil }), " 2/2 gang-scheduler 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := of(t, tt.job, nil)
			if got := fmt.Sprintf("%s %d/%d %s %d", s.Dialect, s.MinAvailable, s.Total, s.Scheduler, s.GPUs); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	if of(t, makeJob(1), nil).Dialect != gang.Dialect("") {
		t.Error("a job without group references has no dialect")
	}
}

func TestMembersAreSorted(t *testing.T) {
	two := int32(2)
	job := &kubeflowv1.TFJob{}
	job.Spec.TFReplicaSpecs = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{"Evaluator": {}, "Worker": {Replicas: &two}, "PS": {}, "Chief": {}, "Zebra": {}, "Ape": nil}
	var names []string
	for _, m := range of(t, job, nil).Rows {
		names = append(names, m.Name())
	}
	if got, want := fmt.Sprint(names), "[chief-0 ps-0 worker-0 worker-1 evaluator-0 zebra-0]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
