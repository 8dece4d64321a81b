package gangcache

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func created(at time.Time) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.CreationTimestamp = metav1.NewTime(at) }
}

// What a gang's group is derived from is kept by kinds of members, of which there are few: not more for a large gang, and none that is left.
func TestKindsOfMembers(t *testing.T) {
	c := New(sink{}, MemberPriority)
	begin := time.Unix(1000, 0)
	for i := range 300 {
		c.SetPod(pod(fmt.Sprint(i), ofLabels, needs("300"), priority(int32(i%2)), created(begin)))
	}
	e := c.gangs[labelGang]
	if len(e.alike) != 2 || e.terms.Priority != 0 || e.oldest().Unix() != 1000 {
		t.Errorf("300 members of two priorities are of %d kinds, with %+v since %s", len(e.alike), e.terms, e.oldest())
	}
	for i := range 300 {
		if i%2 == 0 {
			c.DeletePod(pod(fmt.Sprint(i)).UID)
		} else { // it gets a node, is changed
			bound := pod(fmt.Sprint(i), ofLabels, needs("200"), priority(7), created(begin.Add(time.Minute)))
			bound.Spec.NodeName = "n1"
			c.SetPod(bound)
		}
	}
	if n := e.minimum(c); len(e.alike) != 1 || e.terms.Priority != 7 || n != 200 || e.oldest().Unix() != 1060 {
		t.Errorf("150 are left, of %d kinds, with a minimum of %d and %+v since %s", len(e.alike), n, e.terms, e.oldest())
	}
	want := alike{}
	for _, m := range e.pods[live] {
		want.add(m)
	}
	same := func(a, b *memberCount) bool { return a.n == b.n }
	if !maps.EqualFunc(e.alike, want, same) {
		t.Errorf("counted %v, want %v", e.alike, want)
	}
	for i := range 300 {
		c.DeletePod(pod(fmt.Sprint(i)).UID)
	}
	if len(c.gangs) != 0 {
		t.Errorf("%d gangs are left", len(c.gangs))
	}
}

// withNode is a later state of a pod.
func withNode(pod *corev1.Pod, node string) *corev1.Pod {
	later := pod.DeepCopy()
	later.Spec.NodeName = node
	return later
}

// What happens to a pod that changes nothing of its gang has nothing derived again.
func TestUpdatesOfMembersAreCheap(t *testing.T) {
	c := New(sink{}, MemberPriority)
	for i := range 100 {
		c.SetPod(pod(fmt.Sprint(i), ofLabels, needs("100")))
	}
	later := []*corev1.Pod{withNode(pod("7", ofLabels, needs("100")), "n1"), withNode(pod("7", ofLabels, needs("100")), "n2")}
	at := 0
	if allocated := testing.AllocsPerRun(100, func() {
		at++
		if change := c.SetPod(later[at%2]); len(change.Keys) != 1 || len(change.Members) > 0 {
			t.Errorf("changed: %+v", change)
		}
	}); allocated > 1 {
		t.Errorf("%v allocations for one update", allocated)
	}
	if !slices.Contains(c.Pods(labelGang), later[at%2]) || len(c.Pods(labelGang)) != 100 {
		t.Error("the newest state is not kept")
	}
	// What its gang depends on is looked at, though the pod is the same.
	for name, change := range map[string]func(*corev1.Pod){
		"priority": priority(7), "minimum": needs("50"), "gate": func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} },
	} {
		other := later[0].DeepCopy()
		change(other)
		if sameMember(later[0], other) {
			t.Errorf("%s: nothing is other than before", name)
		}
	}
	if !sameMember(later[0], later[1]) {
		t.Error("on another node the member is not the same")
	}
}

func (e *entry) minimum(c *Cache) int32 {
	n, _ := e.minCount(c, labelGang)
	return n
}

// BenchmarkMemberChanges is the cost of one event of one member: the same in a large gang.
func BenchmarkMemberChanges(b *testing.B) {
	for _, members := range []int{3, 100, 5000} {
		b.Run(fmt.Sprintf("of %d", members), func(b *testing.B) {
			c := New(sink{}, MemberPriority)
			var pods []*corev1.Pod
			for i := range members {
				pods = append(pods, pod(fmt.Sprint(i), ofLabels, needs(fmt.Sprint(members))))
				c.SetPod(pods[i])
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c.SetPod(withNode(pods[i%members], fmt.Sprint("n", i%2)))
			}
		})
	}
}
