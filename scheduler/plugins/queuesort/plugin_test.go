package queuesort

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/scheduler/order"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

type deadlines struct{}

func (deadlines) Limit(pod *corev1.Pod) (limit time.Duration, enforced, ok bool) {
	seconds := pod.Spec.ActiveDeadlineSeconds
	return time.Duration(ptr.Deref(seconds, 0)) * time.Second, true, seconds != nil
}

// sorter is one that began at noon.
func sorter() (*Plugin, *clocktesting.FakePassiveClock, *order.History) {
	clock, history := clocktesting.NewFakePassiveClock(noon), order.NewHistory()
	ranking := order.NewRanking(order.HighestResponseRatio, deadlines{}, history)
	members := func(types.NamespacedName) []*corev1.Pod { return nil }
	return &Plugin{Sorter: NewSorter(ranking, order.NewRuns(history, clock), members, clock)}, clock, history
}

// queued is a pod on its own that is to run so long, or for which nothing is known, and came to the queue so long after noon.
func queued(name string, runs, came time.Duration) *framework.QueuedPodInfo {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}}
	if runs > 0 {
		pod.Spec.ActiveDeadlineSeconds = ptr.To(int64(runs / time.Second))
	}
	info := &framework.QueuedPodInfo{PodInfo: &framework.PodInfo{Pod: pod}}
	info.Timestamp = noon.Add(came)
	info.SetInitialAttemptTimestamp(info.Timestamp)
	return info
}

func TestWhoComesFirst(t *testing.T) {
	p, clock, _ := sorter()
	short, long := queued("short", time.Hour, 2*time.Hour), queued("long", 10*time.Hour, 0)
	clock.SetTime(noon.Add(2 * time.Hour))
	if p.Less(short, long) {
		t.Error("one that has just come is before one that has waited")
	}
	clock.SetTime(noon.Add(3 * time.Hour))
	if !p.Less(short, long) {
		t.Error("one that has waited for its runtime is not before one that has waited for a third of it")
	}
	// The time of the last attempt does not count, or who is tried often would come last.
	retried := queued("retried", time.Hour, 0)
	retried.Timestamp = noon.Add(3 * time.Hour)
	if !p.Less(retried, short) {
		t.Error("an attempt that failed costs its wait")
	}
	important := queued("important", 0, 3*time.Hour)
	important.Pod.Spec.Priority = ptr.To[int32](1)
	if !p.Less(important, retried) {
		t.Error("a higher priority is not first")
	}
}

// The engine keeps the time of a gang's first attempt while the gang is in its queue. It is since when those of its members wait that came with it, and not
// one that came when they got their places.
func TestAMemberThatCameLater(t *testing.T) {
	p, clock, _ := sorter()
	clock.SetTime(noon.Add(3 * time.Hour))
	gang := func(members ...*framework.QueuedPodInfo) *framework.QueuedPodGroupInfo {
		g := &framework.QueuedPodGroupInfo{
			PodGroupInfo:   &framework.PodGroupInfo{Namespace: "team", Name: "gang", Type: fwk.PodGroupKeyType},
			QueuedPodInfos: map[fwk.EntityKey][]*framework.QueuedPodInfo{fwk.PodGroupKey("team", "gang"): members},
		}
		g.SetInitialAttemptTimestamp(noon)
		return g
	}
	single, late := queued("single", 0, time.Hour), queued("late", 0, 2*time.Hour)
	if g := gang(late); p.Less(g, single) || !p.Less(single, g) {
		t.Error("a member that came later than a pod is before it")
	}
	if g := gang(late, queued("early", 0, 0)); p.Less(single, g) || !p.Less(g, single) {
		t.Error("a gang that waits is behind a pod that came later")
	}
}

// A scheduler that takes over goes on counting where the one before it had refused a pod. What it queued itself, it knows since when:
// before, a pod may have been held back by a gate.
func TestWhoWaitedBefore(t *testing.T) {
	p, clock, _ := sorter()
	refused := func(info *framework.QueuedPodInfo, at time.Duration) *framework.QueuedPodInfo {
		info.Pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(noon.Add(at)),
		}}
		return info
	}
	clock.SetTime(noon.Add(time.Hour))
	old, fresh := refused(queued("old", time.Hour, time.Minute), -time.Hour), queued("fresh", time.Hour, 0)
	if !p.Less(old, fresh) {
		t.Error("a wait under another scheduler does not count")
	}
	if gated := refused(queued("gated", time.Hour, 40*time.Minute), 10*time.Minute); p.Less(gated, fresh) {
		t.Error("time under a gate counts")
	}
}

// A gang is counted and followed once, when it is decided that it starts.
func TestReserve(t *testing.T) {
	clock, history := clocktesting.NewFakePassiveClock(noon), order.NewHistory()
	pods := []*corev1.Pod{queued("a", time.Hour, 0).Pod, queued("b", time.Hour, 0).Pod}
	runs := order.NewRuns(history, clock)
	p := &Plugin{Sorter: NewSorter(order.NewRanking(order.HighestResponseRatio, deadlines{}, history), runs, func(types.NamespacedName) []*corev1.Pod { return pods }, clock)}
	p.Register(metrics.NewKubeRegistry().MustRegister)
	for _, pod := range pods {
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("labels:g")}
		if status := p.Reserve(t.Context(), framework.NewCycleState(), pod, "n1"); !status.IsSuccess() {
			t.Fatal(status)
		}
	}
	if got, err := testutil.GetCounterMetricValue(p.count.WithLabelValues("deadline")); got != 1 || err != nil {
		t.Errorf("counted %v times, %v", got, err)
	}
	clock.SetTime(noon.Add(time.Minute))
	runs.Changed(types.NamespacedName{Namespace: "team", Name: "labels:g"}, func() (left, succeeded, failed int) { return 0, 2, 0 })
	if got, _ := history.Expect(order.ClassOf(pods)); got != time.Minute {
		t.Errorf("it learnt %s, want a minute", got)
	}
}

// entities are a heap as the engine's: it compares when something comes or goes, at that moment.
type entities struct {
	all  []fwk.QueuedEntityInfo
	less func(a, b fwk.QueuedEntityInfo) bool
}

func (e *entities) Len() int           { return len(e.all) }
func (e *entities) Less(i, j int) bool { return e.less(e.all[i], e.all[j]) }
func (e *entities) Swap(i, j int)      { e.all[i], e.all[j] = e.all[j], e.all[i] }
func (e *entities) Push(x any)         { e.all = append(e.all, x.(fwk.QueuedEntityInfo)) }
func (e *entities) Pop() any {
	last := e.all[len(e.all)-1]
	e.all = e.all[:len(e.all)-1]
	return last
}

// What an event wakes comes within a moment, and is then tried in order, whatever the clock does within the second.
func TestWhatComesTogetherIsInOrder(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		p, clock, _ := sorter()
		clock.SetTime(noon.Add(100 * time.Hour))
		h := &entities{less: p.Less}
		for n := range 50 {
			clock.SetTime(clock.Now().Add(time.Millisecond))
			heap.Push(h, queued(fmt.Sprint(n), time.Duration(r.IntN(50))*time.Hour, time.Duration(r.IntN(100))*time.Hour))
		}
		last := heap.Pop(h).(fwk.QueuedEntityInfo)
		for h.Len() > 0 {
			clock.SetTime(clock.Now().Add(time.Millisecond))
			next := heap.Pop(h).(fwk.QueuedEntityInfo)
			if p.Less(next, last) {
				t.Fatalf("seed %d: %v is tried after %v", seed, next, last)
			}
			last = next
		}
	}
}

// In a queue that never empties, whoever stays is served all the same: those who come are behind, and all who were there go first or later
// move up.
func TestNoneStaysInTheHeap(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 2))
		p, clock, _ := sorter()
		h := &entities{less: p.Less}
		waits := queued("waits", 1000*time.Hour, 0)
		heap.Push(h, waits)
		served := false
		for n := 0; n < 40000 && !served; n++ {
			clock.SetTime(clock.Now().Add(time.Duration(r.IntN(120)) * time.Second))
			heap.Push(h, queued(fmt.Sprint(n), time.Duration(1+r.IntN(5))*time.Minute, clock.Now().Sub(noon)))
			if h.Len() > 100 {
				served = heap.Pop(h).(*framework.QueuedPodInfo) == waits
			}
		}
		if !served {
			t.Fatalf("seed %d: it was passed 40,000 times", seed)
		}
	}
}

func TestPolicyOf(t *testing.T) {
	args := func(text string) []schedulerconfig.PluginConfig {
		return []schedulerconfig.PluginConfig{{Name: Name, Args: &runtime.Unknown{Raw: []byte(text), ContentType: runtime.ContentTypeJSON}}}
	}
	off := &schedulerconfig.Plugins{MultiPoint: schedulerconfig.PluginSet{Disabled: []schedulerconfig.Plugin{{Name: Name}}}}
	theirs := &schedulerconfig.Plugins{QueueSort: schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{{Name: "Theirs"}}}}
	for name, c := range map[string]struct {
		profile schedulerconfig.KubeSchedulerProfile
		want    order.Policy
	}{
		"by default":      {schedulerconfig.KubeSchedulerProfile{}, order.HighestResponseRatio},
		"configured":      {schedulerconfig.KubeSchedulerProfile{PluginConfig: args(`{"policy":"FirstComeFirstServed"}`)}, order.FirstComeFirstServed},
		"switched off":    {schedulerconfig.KubeSchedulerProfile{Plugins: off}, order.FirstComeFirstServed},
		"another's order": {schedulerconfig.KubeSchedulerProfile{Plugins: theirs}, order.FirstComeFirstServed},
	} {
		if got, err := PolicyOf([]schedulerconfig.KubeSchedulerProfile{c.profile}); got != c.want || err != nil {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if _, err := PolicyOf([]schedulerconfig.KubeSchedulerProfile{{PluginConfig: args(`{"policy":"Fair"}`)}}); err == nil {
		t.Error("a policy that does not exist is accepted")
	}
}

// BenchmarkQueue is what 3,000 that come and are tried within a second cost the queue, each.
func BenchmarkQueue(b *testing.B) {
	for _, learnt := range []bool{false, true} {
		b.Run(fmt.Sprintf("learnt=%t", learnt), func(b *testing.B) {
			p, _, history := sorter()
			if learnt {
				history.Record(order.Class{Name: "another"}, time.Hour)
			}
			const n = 3000
			var all []*framework.QueuedPodInfo
			for i := range n {
				all = append(all, queued(fmt.Sprintf("llama-%d", i), 0, time.Duration(i)*time.Millisecond))
			}
			for b.Loop() {
				h := &entities{less: p.Less}
				for _, entity := range all {
					heap.Push(h, entity)
				}
				for h.Len() > 0 {
					heap.Pop(h)
				}
				clear(p.entries)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/each")
		})
	}
}
