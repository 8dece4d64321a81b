package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var start = time.Unix(1000, 0)

func model() *Model {
	m := New(Limits{Partial: 5 * time.Second, Evicted: 5 * time.Second, Unexplained: 5 * time.Second}, 4000, start)
	m.Declare(Gang{Name: "g", Min: 2, Priority: 10})
	return m
}

func pod(name, node string, cpus int, change ...func(*corev1.Pod)) *corev1.Pod {
	priority := int32(0)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{GangLabel: "g"}}}
	p.Spec = corev1.PodSpec{NodeName: node, Priority: &priority, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(fmt.Sprint(cpus))}}}}}
	if node == "" {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no room"}}
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func evicted(p *corev1.Pod) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler})
}

func dumb(p *corev1.Pod)      { p.Status.Conditions = nil }
func succeeded(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
func dear(p *corev1.Pod)      { *p.Spec.Priority = 10 }

// after checks the model every second for ten seconds.
func after(m *Model, hindered bool) string {
	var broken []string
	for i := range 10 {
		broken = append(broken, m.Check(start.Add(time.Duration(i+1)*time.Second), hindered)...)
	}
	return strings.Join(broken, "; ")
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		do       func(m *Model)
		hindered bool
		want     string
	}{
		"nothing":             {func(*Model) {}, false, ""},
		"whole":               {func(m *Model) { m.See(pod("a", "n1", 1)); m.See(pod("b", "n1", 1)) }, false, ""},
		"in parts":            {func(m *Model) { m.See(pod("a", "n1", 1)) }, false, "places for 1 of the 2"},
		"in parts, hindered":  {func(m *Model) { m.See(pod("a", "n1", 1)) }, true, ""},
		"about to end":        {func(m *Model) { m.See(pod("a", "n1", 1)); m.See(pod("b", "n1", 1, succeeded)) }, false, ""},
		"the gang is gone":    {func(m *Model) { m.See(pod("a", "n1", 1)); m.End("g") }, false, ""},
		"waits, explained":    {func(m *Model) { m.See(pod("a", "", 1)) }, false, ""},
		"waits, unexplained":  {func(m *Model) { m.See(pod("a", "", 1, dumb)) }, false, "pod a has waited for 6s without a reason"},
		"evicted for nothing": {func(m *Model) { m.Gone(pod("v", "n1", 1, evicted)) }, false, "pod v was evicted 6s ago"},
		"evicted for someone": {func(m *Model) {
			m.Gone(pod("v", "n1", 1, evicted))
			m.See(pod("a", "n1", 1, dear))
			m.See(pod("b", "n1", 1))
		}, false, ""},
		"for one of its own kind":  {func(m *Model) { m.Gone(pod("v", "n1", 1, evicted)); m.See(pod("a", "n1", 1)); m.See(pod("b", "n1", 1)) }, false, "pod v was evicted"},
		"for one that went":        {func(m *Model) { m.Gone(pod("v", "n1", 1, evicted)); m.End("g") }, false, ""},
		"deleted, not evicted":     {func(m *Model) { m.Gone(pod("v", "n1", 1)) }, false, ""},
		"its second member is new": {func(m *Model) { m.See(pod("a", "n1", 1)); m.See(pod("b", "", 1)) }, false, "places for 1 of the 2"},
	} {
		t.Run(name, func(t *testing.T) {
			m := model()
			c.do(m)
			if got := after(m, c.hindered); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestARestartWaitsAgain(t *testing.T) {
	m := model()
	m.See(pod("a", "n1", 1))
	m.Check(start.Add(4*time.Second), false)
	m.Restarted()
	if got := m.Check(start.Add(8*time.Second), false); len(got) > 0 {
		t.Error(got)
	}
	if got := m.Check(start.Add(10*time.Second), false); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

func TestOverCommitted(t *testing.T) {
	m := model()
	for i, node := range []string{"n1", "n1", "n2"} {
		if got := m.See(pod(fmt.Sprint("p", i), node, 2)); len(got) > 0 {
			t.Error(got)
		}
	}
	if got := m.See(pod("q", "n1", 1)); len(got) != 1 || !strings.Contains(got[0], "node n1 is over-committed by pod q: 5000m of 4000m") {
		t.Errorf("got %q", got)
	}
	m.Gone(pod("q", "n1", 1))
	m.See(pod("p0", "n1", 2, succeeded))
	if got := m.See(pod("r", "n1", 2)); len(got) > 0 {
		t.Error(got)
	}
}
