package stages_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stages"
)

func TestVolcanoOrder(t *testing.T) {
	strict := func(c *clustertest.Cluster) {
		set("fifo", "spec", "dequeueStrategy")(c.Queue("q", "Open", nil).Object)
	}
	older := func(workers int) clustertest.Gang {
		return clustertest.Gang{Name: "older", Workers: workers, GPUs: 8, Volcano: "q", Missing: workers, Age: time.Hour}
	}
	check(t, []testCase{
		{name: "an older one that cannot start is in the way", code: answer.QueueOrder, exit: 3, first: "it fits, with room for all members now, but team/older is ahead .older, needs 32 GPUs. in queue q", wantText: []string{"why older waits: .*24 of 32 GPUs free", "research/a holds 8 GPUs on n1"}, build: func(c *clustertest.Cluster) {
			strict(c)
			c.Nodes(4, 8).Runs("a", 8, "n1").Add(older(4)).Add(gangOf(1, 8, inQueue("q")))
		}},
		{name: "an older one that starts takes the room", code: answer.QueueOrder, exit: 3, wantText: []string{"older starts first, and takes the room"}, build: func(c *clustertest.Cluster) {
			strict(c)
			o := older(4)
			o.Age = 2 * time.Minute
			c.Nodes(4, 8).Add(o).Add(gangOf(1, 8, inQueue("q"), young))
		}},
		{name: "there is room for both", code: answer.Fits, exit: 3, never: []answer.Code{answer.QueueOrder}, build: func(c *clustertest.Cluster) {
			strict(c)
			o := older(3)
			o.Age = 2 * time.Minute
			c.Nodes(4, 8).Add(o).Add(gangOf(1, 8, inQueue("q"), young))
		}},
		{name: "a younger one is behind", code: answer.Fits, exit: 3, never: []answer.Code{answer.QueueOrder}, build: func(c *clustertest.Cluster) {
			strict(c)
			o := older(4)
			o.Age = time.Second
			c.Nodes(4, 8).Runs("a", 8, "n1").Add(o).Add(gangOf(1, 8, inQueue("q"), young))
		}},
		{name: "a younger one of a higher priority is ahead", code: answer.QueueOrder, exit: 3, build: func(c *clustertest.Cluster) {
			strict(c)
			c.Put(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000})
			o := older(4)
			o.Age, o.Group = time.Second, set("high", "spec", "priorityClassName")
			c.Nodes(4, 8).Runs("a", 8, "n1").Add(o).Add(gangOf(1, 8, inQueue("q")))
		}},
		{name: "no strict order", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(4, 8).Runs("a", 8, "n1").Add(older(4)).Add(gangOf(1, 8, inQueue("q"), young))
		}},
		{name: "another queue", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			strict(c)
			c.Queue("p", "Open", nil)
			o := older(4)
			o.Volcano = "p"
			c.Nodes(4, 8).Runs("a", 8, "n1").Add(o).Add(gangOf(1, 8, inQueue("q"), young))
		}},
		{name: "one that runs is not ahead", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			strict(c)
			o := older(1)
			o.Missing, o.Nodes = 0, []string{"n1"}
			c.Nodes(4, 8).Add(o).Add(gangOf(1, 8, inQueue("q"), young))
		}},
		{name: "it has no room, and is behind as well", code: answer.NodesBusy, exit: 3, also: []answer.Code{answer.QueueOrder}, build: func(c *clustertest.Cluster) {
			strict(c)
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(older(1)).Add(gangOf(1, 8, inQueue("q")))
		}},
	})
}

// Those ahead are listed with what they need, and looking at them ends.
func TestAhead(t *testing.T) {
	r := diagnose(t, func(c *clustertest.Cluster) {
		set("fifo", "spec", "dequeueStrategy")(c.Queue("q", "Open", nil).Object)
		c.Nodes(1, 8).Runs("a", 8, "n1")
		for i, name := range []string{"first", "second", "third"} {
			c.Add(clustertest.Gang{Name: name, Workers: 1, GPUs: 8, Volcano: "q", Missing: 1, Age: time.Duration(5-i) * time.Hour})
		}
		c.Add(gangOf(1, 8, inQueue("q")))
	}, stages.Options{})
	if len(r.Ahead) != 3 || r.Ahead[0].Job != "team/first" || r.Ahead[2].Job != "team/third" {
		t.Errorf("got %+v", r.Ahead)
	}
	for _, a := range r.Ahead {
		if q := a.Needs["nvidia.com/gpu"]; q.Value() != 8 {
			t.Errorf("%s needs %s", a.Job, q.String())
		}
	}
	n := 0
	for _, f := range r.Findings() {
		if f.Code == answer.QueueOrder {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d findings of the same", n)
	}
}

// A scheduler with a Permit stage keeps room in its memory for pods that wait for the others of their gang.
func TestPermit(t *testing.T) {
	const short = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
	refused := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: short}
	// waits is an older gang of which some pods are not refused, and the gang, of which the scheduler reports that it lacks GPUs.
	waits := func(c *clustertest.Cluster, workers, unrefused int, change func(*clustertest.Gang)) {
		older := clustertest.Gang{Name: "older", Workers: workers, GPUs: 8, Age: time.Hour, Pod: func(i int, p *corev1.Pod) {
			p.Status.Conditions = nil
			if i >= unrefused {
				p.Status.Conditions = []corev1.PodCondition{refused}
			}
		}}
		change(&older)
		c.Nodes(4, 8).Add(older).Add(gangOf(1, 8))
		c.Event("Pod", "team", "gang-worker-0", older.Scheduler, "FailedScheduling", short, time.Minute)
	}
	as := func(*clustertest.Gang) {}
	check(t, []testCase{
		{name: "for a gang that can never start", code: answer.ReservedByStuck, exit: 5, first: "it fits by what is free, and scheduler .* counts that as taken: it keeps room for 4 of 5 members of team/older, which wait until the others have a place, and can never start as it is$",
			wantText: []string{"why team/older waits: it needs 5 workers", "the scheduler reported 60s ago: 0/4"}, fix: "fix or delete team/older", build: func(c *clustertest.Cluster) { waits(c, 5, 4, as) }},
		{name: "for a gang that waits for a job", code: answer.ReservedByOthers, exit: 3, first: "keeps room for 3 of 4 members of team/older", build: func(c *clustertest.Cluster) {
			waits(c, 4, 3, as)
			c.S.Nodes[3].Spec.Unschedulable = true
		}},
		{name: "all of it were refused", code: answer.Fits, exit: 3, never: []answer.Code{answer.ReservedByStuck}, build: func(c *clustertest.Cluster) { waits(c, 5, 0, as) }},
		{name: "a younger gang", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			waits(c, 5, 4, func(g *clustertest.Gang) { g.Age = time.Second })
		}},
	})
}
