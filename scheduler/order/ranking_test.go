package order

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

// declared are limits by the names of pods; those that begin with a minus are promises only.
type declared map[string]time.Duration

func (d declared) Limit(pod *corev1.Pod) (limit time.Duration, enforced, ok bool) {
	limit, ok = d[pod.Name]
	return max(limit, -limit), limit > 0, ok
}

// members are those of a run of a job, with so many GPUs each.
func members(job string, n, gpus int) (pods []*corev1.Pod) {
	yes := true
	for i := range n {
		requests := corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(gpus), resource.DecimalSI)}
		pods = append(pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "research", Name: fmt.Sprintf("%s-worker-%d", job, i), OwnerReferences: []metav1.OwnerReference{{Kind: "TFJob", Name: job, Controller: &yes}},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: requests}}}},
		})
	}
	return pods
}

func TestExpect(t *testing.T) {
	history := NewHistory()
	history.Record(ClassOf(members("llama-7", 2, 8)), 3*time.Hour)
	for name, c := range map[string]struct {
		limits  declared
		members []*corev1.Pod
		want    Estimate
	}{
		"deadlines":              {declared{"a-worker-0": time.Hour, "a-worker-1": 2 * time.Hour}, members("a", 2, 1), Estimate{2 * time.Hour, Deadline}},
		"one only promises":      {declared{"a-worker-0": -time.Hour, "a-worker-1": 2 * time.Hour}, members("a", 2, 1), Estimate{2 * time.Hour, Annotation}},
		"one has none":           {declared{"a-worker-0": time.Minute}, members("a", 2, 1), Estimate{}},
		"another run of a job":   {nil, members("llama-8", 2, 8), Estimate{3 * time.Hour, Learnt}},
		"another random end":     {nil, members("llama-x7k2p", 2, 8), Estimate{3 * time.Hour, Learnt}},
		"another shape":          {nil, members("llama-8", 3, 8), Estimate{}},
		"other requests":         {nil, members("llama-8", 2, 4), Estimate{}},
		"another job":            {nil, members("bert-8", 2, 8), Estimate{}},
		"declared before learnt": {declared{"llama-8-worker-0": time.Hour, "llama-8-worker-1": time.Hour}, members("llama-8", 2, 8), Estimate{time.Hour, Deadline}},
		"nobody":                 {nil, nil, Estimate{}},
	} {
		if got := NewRanking(HighestResponseRatio, c.limits, history).Expect(c.members); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := NewRanking(FirstComeFirstServed, declared{}, history).Expect(members("llama-8", 2, 8)); got != (Estimate{}) {
		t.Errorf("first come, first served, it expects %+v", got)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	h := NewHistory()
	class := func(n int) Class { return Class{Namespace: "research", Name: fmt.Sprint(n)} }
	for n := range remembered + 1 {
		h.Record(class(n), time.Hour)
	}
	if _, ok := h.Expect(class(0)); ok {
		t.Error("it remembers more than it may")
	}
	h.Record(class(remembered), 3*time.Hour)
	if got, ok := h.Expect(class(remembered)); !ok || got != 2*time.Hour {
		t.Errorf("expects %s, want the average", got)
	}
}

// What is remembered of thousands of gangs is short, whatever users write: the reference to an owner may have a megabyte, and requests ten thousand
// resources, of none of which any node need have something.
func TestClassesAreBounded(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	pods := members("llama", 2, 8)
	pods[0].OwnerReferences[0].Kind, pods[0].OwnerReferences[0].Name, pods[0].OwnerReferences[0].UID = long, long, types.UID(long)
	for i := range 10_000 {
		pods[0].Spec.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprint("a/r", i))] = resource.MustParse("0")
	}
	runs := NewRuns(NewHistory(), clocktesting.NewFakePassiveClock(noon))
	group := types.NamespacedName{Namespace: "research", Name: "labels:llama"}
	runs.Started(group, pods[0], func() []*corev1.Pod { return pods })
	value, _ := runs.begun.Get(group)
	began := value.(run)
	if n := len(began.owner) + len(began.class.Kind) + len(began.class.Name) + len(began.class.Shape); n > 1024 {
		t.Errorf("%d bytes are remembered", n)
	}
	if other := ClassOf(pods[1:]); other == began.class {
		t.Error("another owner and another shape are the same class")
	}
}

// newRuns follows no gang yet, and knows of no run.
func newRuns() (*History, *clocktesting.FakePassiveClock, *Runs) {
	history, clock := NewHistory(), clocktesting.NewFakePassiveClock(noon)
	return history, clock, NewRuns(history, clock)
}

// followed is the gang that is followed.
var followed = types.NamespacedName{Namespace: "research", Name: "labels:llama-7"}

// A gang of pods that no job owns was deleted, and comes again a day later: it has run since it came again.
func TestRunsOfPodsWithoutOwner(t *testing.T) {
	history, clock, runs := newRuns()
	pods := members("llama-7", 2, 8)
	for _, pod := range pods {
		pod.OwnerReferences = nil
	}
	start := func() {
		for _, pod := range pods {
			runs.Started(followed, pod, func() []*corev1.Pod { return pods })
		}
	}
	start()
	runs.Changed(followed, func() (left, succeeded, failed int) { return 0, 0, 0 })
	clock.SetTime(noon.Add(24 * time.Hour))
	start()
	clock.SetTime(noon.Add(25 * time.Hour))
	runs.Changed(followed, func() (left, succeeded, failed int) { return 0, 2, 0 })
	if got, _ := history.Expect(ClassOf(pods)); got != time.Hour {
		t.Errorf("expects %s, want 1h", got)
	}
}

func TestRuns(t *testing.T) {
	history, clock, runs := newRuns()
	pods := members("llama-7", 2, 8)
	read := 0
	start := func() {
		for _, pod := range pods {
			runs.Started(followed, pod, func() []*corev1.Pod { read++; return pods })
		}
	}
	change := func(left, succeeded, failed int) {
		runs.Changed(followed, func() (int, int, int) { return left, succeeded, failed })
	}
	expects := func(want time.Duration) {
		t.Helper()
		if got, _ := history.Expect(ClassOf(pods)); got != want {
			t.Errorf("expects %s, want %s", got, want)
		}
	}
	change(0, 2, 0) // it began before the scheduler did
	expects(0)
	start()
	if read != 1 {
		t.Errorf("members read %d times", read)
	}
	late := types.NamespacedName{Namespace: "research", Name: "labels:late-7"} // whose last member comes after the first has its node
	for n := range 2 {
		runs.Started(late, members("late-7", 2, 8)[n], func() []*corev1.Pod { return members("late-7", n+1, 8) })
	}
	runs.Changed(late, func() (left, succeeded, failed int) { return 0, 2, 0 })
	if _, ok := history.Expect(ClassOf(members("late-8", 2, 8))); !ok {
		t.Error("a gang that grew while it started is not learnt")
	}
	clock.SetTime(noon.Add(time.Hour))
	change(1, 1, 0)
	change(0, 1, 0) // the watch of those that end is behind
	expects(0)
	clock.SetTime(noon.Add(2 * time.Hour))
	change(0, 2, 0)
	change(0, 2, 0)
	expects(2 * time.Hour)
	start()
	change(0, 1, 1) // one that failed teaches nothing
	expects(2 * time.Hour)
	start()
	clock.SetTime(noon.Add(10 * time.Hour)) // it is deleted, and another comes that has the same name
	pods = members("llama-7", 2, 8)
	for _, pod := range pods {
		pod.OwnerReferences[0].UID = "second"
	}
	start()
	clock.SetTime(noon.Add(14 * time.Hour))
	change(0, 2, 0)
	expects(3 * time.Hour)
}

// A run that did not succeed would have gone on: it counts where it was longer than expected, and no shorter one does.
func TestRunsThatDoNotSucceed(t *testing.T) {
	history, clock, runs := newRuns()
	pods, at := members("llama-7", 2, 8), noon
	play := func(ran time.Duration, succeeded, failed int) time.Duration {
		for _, pod := range pods {
			runs.Started(followed, pod, func() []*corev1.Pod { return pods })
		}
		at = at.Add(ran)
		clock.SetTime(at)
		runs.Changed(followed, func() (int, int, int) { return 0, succeeded, failed })
		got, _ := history.Expect(ClassOf(pods))
		return got
	}
	for i, c := range []struct {
		ran               time.Duration
		succeeded, failed int
		want              time.Duration
	}{
		{time.Hour, 1, 1, 0}, // nothing is expected yet
		{time.Minute, 2, 0, time.Minute},
		{time.Second, 1, 1, time.Minute},
		{9 * time.Minute, 1, 1, 5 * time.Minute},
		{15 * time.Minute, 0, 0, 10 * time.Minute}, // deleted: the pods of the same job come again, and have run since then
		{2 * time.Minute, 0, 0, 10 * time.Minute},
		{20 * time.Minute, 2, 0, 15 * time.Minute},
	} {
		if got := play(c.ran, c.succeeded, c.failed); got != c.want {
			t.Errorf("run %d: expects %s, want %s", i, got, c.want)
		}
	}
}

// The members of a gang may have several owners, as those of a JobSet have.
func TestRunsOfSeveralOwners(t *testing.T) {
	history, clock, runs := newRuns()
	pods := members("llama-7", 4, 8)
	for i, pod := range pods {
		pod.OwnerReferences[0].UID = types.UID(fmt.Sprint("job-", i%2))
	}
	began, read := 0, 0
	for i, pod := range pods {
		clock.SetTime(noon.Add(time.Duration(i) * time.Minute))
		if runs.Started(followed, pod, func() []*corev1.Pod { read++; return pods }) {
			began++
		}
	}
	clock.SetTime(noon.Add(time.Hour))
	runs.Changed(followed, func() (left, succeeded, failed int) { return 0, 4, 0 })
	if got, _ := history.Expect(ClassOf(pods)); got != time.Hour || began != 1 || read != 1 {
		t.Errorf("expects %s after %d starts, members read %d times", got, began, read)
	}
}
