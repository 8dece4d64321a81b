package gang_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/tfjob"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// pod is NAME: a member's pod of the job llama, which has no node.
func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "llama-" + name, CreationTimestamp: metav1.NewTime(now)}}
	p.Status.Phase = corev1.PodPending
	if role, index, ok := strings.Cut(name, "-"); ok && role == "worker" {
		p.Labels = map[string]string{"training.kubeflow.org/replica-type": role, "training.kubeflow.org/replica-index": index}
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func on(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }
func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}
func created(before time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-before)) }
}

func condition(kind corev1.PodConditionType, status corev1.ConditionStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: status})
	}
}

func runs(p *corev1.Pod) {
	on("n1")(p)
	phase(corev1.PodRunning)(p)
	condition(corev1.PodReady, corev1.ConditionTrue)(p)
}

func notReady(p *corev1.Pod) {
	on("n1")(p)
	phase(corev1.PodRunning)(p)
	condition(corev1.PodReady, corev1.ConditionFalse)(p)
}

func refused(p *corev1.Pod) { condition(corev1.PodScheduled, corev1.ConditionFalse)(p) }
func gated(p *corev1.Pod) {
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
}

func leaving(p *corev1.Pod) {
	at := metav1.NewTime(now)
	p.DeletionTimestamp = &at
}

func crashes(p *corev1.Pod) {
	on("n1")(p)
	phase(corev1.PodRunning)(p)
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 2, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
}

func tf(workers int32) *gang.Job {
	return &gang.Job{Reader: tfjob.Reader(), Meta: metav1.ObjectMeta{Namespace: "research", Name: "llama"}, Roles: []gang.Role{{Name: "Worker", Replicas: workers}}}
}

func batch(parallelism, completions, done int32) *gang.Job {
	j := batchjob.Convert(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "llama"},
		Spec: batchv1.JobSpec{Parallelism: &parallelism, Completions: &completions}, Status: batchv1.JobStatus{Succeeded: done}})
	return &j
}

// unbounded is a Job without a number of completions.
func unbounded(parallelism int32) *gang.Job {
	j := batch(parallelism, parallelism, 0)
	j.BatchJob.Spec.Completions = nil
	return j
}

// indexed is a Job of which indexes have failed for good.
func indexed(completions, done int32, failed string) *gang.Job {
	mode, limit := batchv1.IndexedCompletion, int32(0)
	j := batchjob.Convert(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "llama"},
		Spec:   batchv1.JobSpec{Parallelism: &completions, Completions: &completions, CompletionMode: &mode, BackoffLimitPerIndex: &limit},
		Status: batchv1.JobStatus{Succeeded: done, FailedIndexes: &failed}})
	return &j
}

// at gives a pod of a Job its index.
func at(index string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{batchv1.JobCompletionIndexAnnotation: index} }
}

func bare(pods ...*corev1.Pod) *gang.Job {
	return &gang.Job{Bare: pods, Roles: []gang.Role{{Name: "Member", Replicas: int32(len(pods))}}}
}

// The members and the state of a gang are those of this table, in every command and in the explanation: there is one model.
func TestMembersAndStates(t *testing.T) {
	min2 := func(j *gang.Job) *gang.Job { n := int32(2); j.MinMember = &n; return j }
	ended := func(j *gang.Job, failed bool) *gang.Job { j.End = &gang.End{Failed: failed}; return j }
	suspended := func(j *gang.Job) *gang.Job { j.Suspended = true; return j }
	tests := []struct {
		name string
		job  *gang.Job
		pods []*corev1.Pod
		want string // STATE: MEMBER=STATE …
	}{
		{"no pods", tf(2), nil, "Pending: worker-0=Missing worker-1=Missing"},
		{"both wait", tf(2), []*corev1.Pod{pod("worker-0"), pod("worker-1", refused)}, "Pending: worker-0=Pending worker-1=Pending"},
		{"gated", tf(2), []*corev1.Pod{pod("worker-0", gated), pod("worker-1", gated)}, "Pending: worker-0=Gated worker-1=Gated"},
		{"both bound", tf(2), []*corev1.Pod{pod("worker-0", on("n1")), pod("worker-1", on("n1"))}, "Starting: worker-0=Starting worker-1=Starting"},
		{"being bound", tf(2), []*corev1.Pod{pod("worker-0", runs), pod("worker-1")}, "Starting: worker-0=Running worker-1=Pending"},
		{"left behind", tf(2), []*corev1.Pod{pod("worker-0", runs), pod("worker-1", created(time.Minute))}, "Degraded: worker-0=Running worker-1=Pending"},
		{"refused", tf(2), []*corev1.Pod{pod("worker-0", runs), pod("worker-1", refused)}, "Degraded: worker-0=Running worker-1=Pending"},
		{"one is gated", tf(2), []*corev1.Pod{pod("worker-0", runs), pod("worker-1", gated)}, "Degraded: worker-0=Running worker-1=Gated"},
		{"one is missing", tf(2), []*corev1.Pod{pod("worker-0", runs)}, "Degraded: worker-0=Running worker-1=Missing"},
		{"both run", tf(2), []*corev1.Pod{pod("worker-0", runs), pod("worker-1", runs)}, "Running: worker-0=Running worker-1=Running"},
		{"one is not Ready", tf(2), []*corev1.Pod{pod("worker-0", runs), pod("worker-1", notReady)}, "Starting: worker-0=Running worker-1=Starting"},
		{"one crashes", tf(2), []*corev1.Pod{pod("worker-0", runs), pod("worker-1", crashes)}, "Degraded: worker-0=Running worker-1=Starting"},
		{"one has succeeded", tf(2), []*corev1.Pod{pod("worker-0", runs), pod("worker-1", phase(corev1.PodSucceeded))}, "Running: worker-0=Running worker-1=Succeeded"},
		{"one has failed", tf(2), []*corev1.Pod{pod("worker-0", runs), pod("worker-1", phase(corev1.PodFailed))}, "Degraded: worker-0=Running worker-1=Failed"},
		{"one leaves", tf(2), []*corev1.Pod{pod("worker-0", runs), pod("worker-1", runs, leaving)}, "Degraded: worker-0=Running worker-1=Terminating"},
		{"one's node is lost", tf(2), []*corev1.Pod{pod("worker-0", runs), pod("worker-1", runs, on("lost"))}, "Degraded: worker-0=Running worker-1=Lost"},
		{"all leave", tf(1), []*corev1.Pod{pod("worker-0", leaving)}, "Degraded: worker-0=Terminating"},
		{"elastic", min2(tf(3)), []*corev1.Pod{pod("worker-0", runs), pod("worker-1", runs), pod("worker-2", refused)}, "Running: worker-0=Running worker-1=Running worker-2=Pending"},
		{"elastic, one leaves", min2(tf(3)), []*corev1.Pod{pod("worker-0", runs), pod("worker-1", runs), pod("worker-2", leaving)}, "Degraded: worker-0=Running worker-1=Running worker-2=Terminating"},
		{"a pod too many", tf(1), []*corev1.Pod{pod("worker-0", runs), pod("worker-1", runs)}, "Running: worker-0=Running"},
		{"replaced", tf(1), []*corev1.Pod{pod("worker-0", phase(corev1.PodFailed)), pod("worker-0", runs)}, "Running: worker-0=Running"},
		{"succeeded beats a replacement", tf(1), []*corev1.Pod{pod("worker-0", phase(corev1.PodSucceeded)), pod("worker-0")}, "Running: worker-0=Succeeded"},
		{"the job failed", ended(tf(1), true), []*corev1.Pod{pod("worker-0", runs)}, "Failed: worker-0=Running"},
		{"the job succeeded", ended(tf(1), false), nil, "Succeeded: worker-0=Missing"},
		{"suspended", suspended(tf(1)), []*corev1.Pod{pod("worker-0", runs)}, "Suspended: worker-0=Running"},
		{"no members", tf(0), nil, "Pending:"},
		{"a Job, half done", batch(2, 4, 2), []*corev1.Pod{pod("a", phase(corev1.PodSucceeded)), pod("b", phase(corev1.PodSucceeded)), pod("c", runs), pod("d")},
			"Running: worker-0=Running worker-1=Pending worker-2=Succeeded worker-3=Succeeded"},
		{"a Job, half done, and none runs", batch(2, 4, 2), []*corev1.Pod{pod("a", phase(corev1.PodSucceeded)), pod("b", phase(corev1.PodSucceeded)), pod("c", refused), pod("d")},
			"Pending: worker-0=Pending worker-1=Pending worker-2=Succeeded worker-3=Succeeded"},
		{"a Job, one after the other, and the second waits", batch(1, 5, 1), []*corev1.Pod{pod("a", phase(corev1.PodSucceeded)), pod("b")}, "Pending: worker-0=Pending worker-1=Succeeded"},
		{"a Job, one after the other, and the second starts", batch(1, 5, 1), []*corev1.Pod{pod("a", phase(corev1.PodSucceeded)), pod("b", on("n1"))}, "Starting: worker-0=Starting worker-1=Succeeded"},
		{"a Job, all done", batch(2, 2, 2), []*corev1.Pod{pod("a", phase(corev1.PodSucceeded)), pod("b", phase(corev1.PodSucceeded))}, "Running: worker-0=Succeeded worker-1=Succeeded"},
		{"a Job, all done, and not counted yet", batch(2, 2, 0), []*corev1.Pod{pod("a", phase(corev1.PodSucceeded)), pod("b", phase(corev1.PodSucceeded))}, "Running: worker-0=Succeeded worker-1=Succeeded"},
		{"a Job, one done, and not counted yet", batch(2, 2, 0), []*corev1.Pod{pod("a", phase(corev1.PodSucceeded)), pod("b", runs)}, "Running: worker-0=Running worker-1=Succeeded"},
		{"a Job, its pods deleted", batch(2, 4, 2), []*corev1.Pod{pod("a", runs)}, "Running: worker-0=Running worker-1=Missing"},
		{"a Job, one index done, and not counted yet", indexed(3, 0, ""), []*corev1.Pod{pod("a", at("0"), phase(corev1.PodSucceeded)), pod("b", at("1"), runs), pod("c", at("2"), runs)},
			"Running: worker-0=Succeeded worker-1=Running worker-2=Running"},
		{"a Job without completions, one done", unbounded(3), []*corev1.Pod{pod("a", phase(corev1.PodSucceeded)), pod("b", runs)}, "Running: worker-0=Running worker-1=Succeeded"},
		{"elastic, and what is left waits", min2(tf(3)), []*corev1.Pod{pod("worker-0", phase(corev1.PodSucceeded)), pod("worker-1", phase(corev1.PodSucceeded)), pod("worker-2", refused)},
			"Pending: worker-0=Succeeded worker-1=Succeeded worker-2=Pending"},
		{"a Job's pod failed", batch(1, 1, 0), []*corev1.Pod{pod("a", phase(corev1.PodFailed))}, "Degraded: worker-0=Failed"},
		{"a Job's pod was replaced", batch(1, 1, 0), []*corev1.Pod{pod("a", phase(corev1.PodFailed)), pod("b", runs)}, "Running: worker-0=Running"},
		{"an index has failed for good", indexed(3, 1, "1"), []*corev1.Pod{pod("a", at("0"), phase(corev1.PodSucceeded)), pod("b", at("1"), phase(corev1.PodFailed)), pod("c", at("2"), runs)},
			"Running: worker-0=Succeeded worker-2=Running"},
		{"an index has failed for good, and others have no pod", indexed(5, 0, "0,2-3"), []*corev1.Pod{pod("b", at("2"), phase(corev1.PodFailed))}, "Pending: worker-1=Missing worker-4=Missing"},
		{"all indexes have failed for good", indexed(2, 0, "0-2000000000"), nil, "Pending:"},
		{"elastic without a policy", func() *gang.Job { j := tf(3); j.Elastic = new(int32(2)); return j }(), []*corev1.Pod{pod("worker-0", runs), pod("worker-1", runs), pod("worker-2", refused)},
			"Running: worker-0=Running worker-1=Running worker-2=Pending"},
		{"pods without a job", bare(pod("a", phase(corev1.PodSucceeded)), pod("b", runs)), nil, "Running: member-0=Succeeded member-1=Running"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pods := tt.pods
			if tt.job.Bare != nil {
				pods = tt.job.Bare
			}
			members, unlisted := gang.Assemble(tt.job, pods, func(node string) bool { return node == "lost" })
			g := gang.New(tt.job, members, unlisted, undeclared, nil)
			got := string(gang.StateOf(g, now)) + ":"
			for _, m := range g.Members {
				got += fmt.Sprintf(" %s=%s", m.Name(), m.State)
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// A gang that has failed for good below its minimum does not run, however many others do.
func TestFailedForGood(t *testing.T) {
	running := func(indexes ...string) (pods []*corev1.Pod) {
		for _, i := range indexes {
			pods = append(pods, pod("p"+i, at(i), runs))
		}
		return pods
	}
	parallel := func(j *gang.Job, n int32) *gang.Job {
		j.BatchJob.Spec.Parallelism = &n
		one := batchjob.Convert(j.BatchJob)
		return &one
	}
	group := func(n int32) func(*gang.Job, []gang.Member) gang.Declared {
		return func(*gang.Job, []gang.Member) gang.Declared {
			return gang.Declared{Decl: &gang.Declaration{MinMember: n}}
		}
	}
	named := func(*gang.Job, []gang.Member) gang.Declared { return gang.Declared{Named: gang.Key{Name: "g"}} }
	for name, tt := range map[string]struct {
		job     *gang.Job
		pods    []*corev1.Pod
		declare func(*gang.Job, []gang.Member) gang.Declared
		want    gang.State
		up      bool
		lacks   int32
		min     int32
	}{
		"the group needs all":                     {indexed(4, 0, "2"), running("0", "1", "3"), group(4), gang.Degraded, false, 1, 3},
		"one is left of it":                       {indexed(4, 0, "1-3"), running("0"), group(4), gang.Degraded, false, 3, 1},
		"the group can do without":                {indexed(4, 0, "2"), running("0", "1", "3"), group(3), gang.Running, true, 0, 3},
		"the group was not read, and needs all":   {indexed(4, 0, "2"), running("0", "1", "3"), named, gang.Degraded, false, 1, 3},
		"no group":                                {indexed(4, 0, "2"), running("0", "1", "3"), undeclared, gang.Running, true, 0, 1},
		"others take their turn":                  {parallel(indexed(100, 0, "2"), 4), running("0", "1", "3", "4"), group(4), gang.Running, true, 0, 4},
		"none of the others is there":             {indexed(4, 0, "2"), nil, group(4), gang.Pending, false, 1, 3},
		"others have ended well":                  {indexed(4, 0, "2"), []*corev1.Pod{pod("a", at("0"), phase(corev1.PodSucceeded)), pod("b", at("1"), runs), pod("c", at("3"), runs)}, group(4), gang.Degraded, false, 1, 3},
		"all others have, and the Job ends soon":  {indexed(2, 0, "1"), []*corev1.Pod{pod("a", at("0"), phase(corev1.PodSucceeded))}, group(2), gang.Running, false, 1, 1},
		"all have failed, and the Job fails soon": {indexed(2, 0, "0-1"), nil, group(2), gang.Pending, false, 2, 1},
		"one that the Job does not have":          {indexed(4, 0, "9"), running("0", "1", "2", "3"), group(4), gang.Running, true, 0, 4},
	} {
		members, unlisted := gang.Assemble(tt.job, tt.pods, nil)
		g := gang.New(tt.job, members, unlisted, tt.declare, nil)
		if got := gang.StateOf(g, now); got != tt.want || g.Up() != tt.up || g.LacksForGood() != tt.lacks || g.Min != tt.min {
			t.Errorf("%s: %s up %v lacks %d min %d, want %s %v %d %d", name, got, g.Up(), g.LacksForGood(), g.Min, tt.want, tt.up, tt.lacks, tt.min)
		}
	}
}

// Whatever number of members a user writes, few are listed and all are counted.
func TestAnyNumberOfMembers(t *testing.T) {
	many := make([]gang.Role, 500)
	for i := range many {
		many[i] = gang.Role{Name: fmt.Sprintf("Role%d", i), Replicas: math.MaxInt32}
	}
	empty := make([]gang.Role, len(many))
	for i := range empty {
		empty[i] = gang.Role{Name: many[i].Name}
	}
	if _, unlisted := gang.Assemble(&gang.Job{Reader: tf(1).Reader, Roles: empty}, nil, nil); len(unlisted) > 0 {
		t.Errorf("roles without replicas have members: %v", unlisted)
	}
	for name, tt := range map[string]struct {
		job              *gang.Job
		pods             []*corev1.Pod
		total, gone, min int32
	}{
		"replicas":                {tf(math.MaxInt32), []*corev1.Pod{pod("worker-0", runs), pod("worker-2147483646", runs)}, math.MaxInt32, math.MaxInt32 - 2, math.MaxInt32},
		"parallelism":             {batch(math.MaxInt32, math.MaxInt32, 0), []*corev1.Pod{pod("a", runs), pod("b")}, math.MaxInt32, math.MaxInt32 - 2, 1},
		"failed indexes":          {indexed(math.MaxInt32, 0, "1-2147483600"), []*corev1.Pod{pod("a", at("0"), runs)}, 47, 46, 1},
		"a role that is negative": {tf(math.MinInt32), nil, 0, 0, 0},
		"roles":                   {&gang.Job{Reader: tf(1).Reader, Roles: many}, nil, math.MaxInt32, math.MaxInt32, math.MaxInt32},
	} {
		members, unlisted := gang.Assemble(tt.job, tt.pods, nil)
		g := gang.New(tt.job, members, unlisted, undeclared, nil)
		if len(members) > 1100 {
			t.Errorf("%s: %d members are listed", name, len(members))
		}
		if g.Total() != tt.total || g.Count(gang.Missing) != tt.gone || g.Min != tt.min {
			t.Errorf("%s: total %d, missing %d, min %d, want %d, %d, %d", name, g.Total(), g.Count(gang.Missing), g.Min, tt.total, tt.gone, tt.min)
		}
		if bound := g.Count(gang.Running, gang.Pending); bound != int32(len(tt.pods)) && tt.total > 0 {
			t.Errorf("%s: %d pods are members, want %d", name, bound, len(tt.pods))
		}
	}
}

// undeclared declares no gang.
func undeclared(*gang.Job, []gang.Member) gang.Declared { return gang.Declared{} }
