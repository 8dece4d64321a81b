package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/sandbox/demo"
)

// TestSchedulerPlaces holds the scheduler's placement to what other schedulers were reported to get wrong, on two nodes of 4 cpu
// and 8 GPUs.
func TestSchedulerPlaces(t *testing.T) {
	stage := newStage(t, gangScheduler("scheduler-plugins"))
	must(t, stage.AddNodes(t.Context(), 2, 8))
	for _, dialect := range []string{"scheduler-plugins", "labels"} {
		t.Run(dialect, func(t *testing.T) {
			s := &placing{T: t, stage: stage, dialect: dialect}
			t.Run("T02 two gangs", s.sub((*placing).twoGangs))
			t.Run("T03 hoarding", s.sub((*placing).hoarding))
			t.Run("T04 head of line", s.sub((*placing).headOfLine))
			t.Run("T26 packing trap", s.sub((*placing).packingTrap))
		})
	}
	t.Run("nothing was forbidden", func(t *testing.T) { nothingForbidden(t, stage) })
}

// placing creates gangs of one dialect.
type placing struct {
	*testing.T
	stage   *demo.Stage
	dialect string
}

// sub is a test that leaves nothing behind.
func (s *placing) sub(test func(*placing)) func(*testing.T) {
	return func(t *testing.T) {
		sub := &placing{T: t, stage: s.stage, dialect: s.dialect}
		test(sub)
		pods := s.stage.Client().CoreV1().Pods(demo.Namespace)
		must(t, pods.DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}, metav1.ListOptions{}))
		eventually(t, "all pods are gone", func(ctx context.Context) bool {
			list, err := pods.List(ctx, metav1.ListOptions{})
			return err == nil && len(list.Items) == 0
		})
	}
}

// gang declares a gang; its members are to be made with the function that is returned.
func (s *placing) gang(name string, minimum int32) func(member, name corev1.ResourceName, amount string) *corev1.Pod {
	s.Helper()
	name = fmt.Sprintf("%s-%s-%d", name, s.dialect, time.Now().UnixNano()%1e6)
	mark := func(meta *metav1.ObjectMeta) { labels.Mark(meta, name, minimum) }
	if s.dialect == "scheduler-plugins" {
		createGroup(s.T, s.stage, name, int64(minimum))
		mark = func(meta *metav1.ObjectMeta) { schedulerplugins.Mark(meta, name) }
	}
	return func(member, asks corev1.ResourceName, amount string) *corev1.Pod {
		p := pod(string(member), mark)
		requests := p.Spec.Containers[0].Resources.Requests
		requests[asks] = resource.MustParse(amount)
		if asks != corev1.ResourceCPU {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{asks: resource.MustParse(amount)}
		}
		return p
	}
}

// placed counts pods with a node, by the beginning of their names.
func (s *placing) placed(prefix string) int {
	list, err := s.stage.Client().CoreV1().Pods(demo.Namespace).List(s.Context(), metav1.ListOptions{})
	must(s.T, err)
	n := 0
	for _, p := range list.Items {
		if p.Spec.NodeName != "" && strings.HasPrefix(p.Name, prefix) {
			n++
		}
	}
	return n
}

func (s *placing) wait(what string, done func() bool) time.Duration {
	s.Helper()
	start := time.Now()
	eventually(s.T, what, func(context.Context) bool { return done() })
	return time.Since(start)
}

func (s *placing) twoGangs() {
	a, b := s.gang("a", 5), s.gang("b", 5)
	for i := range 5 {
		create(s.T, s.stage, a(corev1.ResourceName(fmt.Sprint("a", i)), "cpu", "1"), b(corev1.ResourceName(fmt.Sprint("b", i)), "cpu", "1"))
	}
	took := s.wait("one gang has its nodes", func() bool { return s.placed("a")+s.placed("b") == 5 })
	if n := s.placed("a"); n != 0 && n != 5 || took > 3*time.Second {
		s.Errorf("after %s gang a has %d nodes and gang b %d", took, n, s.placed("b"))
	}
	winner, other := "a", "b"
	if s.placed("b") == 5 {
		winner, other = "b", "a"
	}
	for i := range 5 {
		must(s.T, s.stage.Client().CoreV1().Pods(demo.Namespace).Delete(s.Context(), fmt.Sprint(winner, i), metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}))
	}
	if took := s.wait("the other gang has its nodes", func() bool { return s.placed(other) == 5 }); took > 5*time.Second {
		s.Errorf("the other gang waited %s for the nodes of the first", took)
	}
}

func (s *placing) hoarding() {
	a := s.gang("a", 9)
	for i := range 9 {
		create(s.T, s.stage, a(corev1.ResourceName(fmt.Sprint("a", i)), "cpu", "1"))
	}
	explained(s.T, s.stage, "a0", "8 of the 9 members that its gang needs fit")
	create(s.T, s.stage, pod("single", nil))
	if took := s.wait("a single pod gets a node", func() bool { return s.placed("single") == 1 }); took > time.Second {
		s.Errorf("a single pod waited %s beside a gang that cannot start", took)
	}
	if n := s.placed("a"); n != 0 {
		s.Errorf("%d members of a gang that does not fit have nodes", n)
	}
}

func (s *placing) headOfLine() {
	a, b := s.gang("a", 9), s.gang("b", 3)
	for i := range 9 {
		create(s.T, s.stage, a(corev1.ResourceName(fmt.Sprint("a", i)), "cpu", "1"))
	}
	for i := range 3 {
		create(s.T, s.stage, b(corev1.ResourceName(fmt.Sprint("b", i)), "cpu", "1"))
	}
	if took := s.wait("the small gang has its nodes", func() bool { return s.placed("b") == 3 }); took > 2*time.Second {
		s.Errorf("a gang that fits waited %s behind one that does not", took)
	}
	for i := range 9 {
		explained(s.T, s.stage, fmt.Sprint("a", i), "it needs 9 members with 1 cpu each, and the 2 nodes that it may use have 8 cpu in all")
	}
}

func (s *placing) packingTrap() {
	g := s.gang("g", 6)
	for _, p := range []*corev1.Pod{
		g("g-chief", "nvidia.com/gpu", "4"), g("g-ps-0", "nvidia.com/gpu", "3"), g("g-ps-1", "nvidia.com/gpu", "3"),
		g("g-worker-0", "nvidia.com/gpu", "2"), g("g-worker-1", "nvidia.com/gpu", "2"), g("g-worker-2", "nvidia.com/gpu", "2"),
	} {
		create(s.T, s.stage, p)
	}
	s.wait("all six members have nodes", func() bool { return s.placed("g-") == 6 })
}
