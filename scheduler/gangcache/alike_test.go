package gangcache

import (
	"fmt"
	"maps"
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
				c.SetPod(pods[i%members])
			}
		})
	}
}
