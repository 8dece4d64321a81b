package stages_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

// guard adds a PodDisruptionBudget for the pods of a label, which lets so many go.
func guard(c *clustertest.Cluster, namespace, name, key, value string, allowed int32) {
	c.Put(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}, Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed}})
}

// What is known of preemption: against which budgets it would be, and that some schedulers do not go by priorities alone.
func TestMayPreempt(t *testing.T) {
	const jobName = "training.kubeflow.org/job-name"
	check(t, []testCase{
		{name: "against a budget", code: answer.NodesBusy, exit: 3, wantText: []string{"its scheduler may preempt TFJob research/a", "PodDisruptionBudget research/a lets none of 2 pods go: a scheduler goes against that only where nothing else makes room"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8, spec(priority(50))))
			guard(c, "research", "a", jobName, "a", 0)
		}},
		{name: "within a budget", code: answer.NodesBusy, exit: 3, wantText: []string{"its scheduler may preempt TFJob research/a"}, not: []string{"PodDisruptionBudget"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8, spec(priority(50))))
			guard(c, "research", "a", jobName, "a", 2)
		}},
		{name: "there are others without a budget", code: answer.NodesBusy, exit: 3, not: []string{"PodDisruptionBudget"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Runs("b", 8, "n2").Add(gangOf(1, 8, spec(priority(50))))
			guard(c, "research", "a", jobName, "a", 0)
		}},
		{name: "a budget lets those go that are enough", code: answer.NodesBusy, exit: 3, not: []string{"PodDisruptionBudget"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Runs("b", 8, "n2").Add(gangOf(1, 8, spec(priority(50))))
			guard(c, "research", "a", jobName, "a", 0)
			guard(c, "research", "b", jobName, "b", 5)
		}},
		{name: "a budget of all pods is for evictions", code: answer.NodesBusy, exit: 3, not: []string{"PodDisruptionBudget"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8, spec(priority(50))))
			guard(c, "research", "a", jobName, "a", 0)
			c.S.DisruptionBudgets[0].Spec.Selector = &metav1.LabelSelector{}
		}},
		{name: "a budget that selects by too much is not read", code: answer.NodesBusy, exit: 3, not: []string{"PodDisruptionBudget"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8, spec(priority(50))))
			guard(c, "research", "a", jobName, "a", 0)
			c.S.DisruptionBudgets[0].Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: jobName, Operator: metav1.LabelSelectorOpNotIn, Values: make([]string, 200)}}
		}},
		{name: "by Volcano", code: answer.NodesBusy, exit: 3, not: []string{"its scheduler may preempt"},
			wantText: []string{"whether its scheduler preempts TFJob research/a .priority 0 < 50. is not known: Volcano does so within a queue where its configuration has the action preempt"}, build: func(c *clustertest.Cluster) {
				byVolcano, o := speaks(c, gang.Volcano, "volcano"), other("a", 8, "n1")
				byVolcano(&o)
				c.Nodes(1, 8).Add(o).Add(gangOf(1, 8, byVolcano, spec(priority(50))))
			}},
	})
}

// What never ends is no obstacle to a gang whose scheduler preempts it, unless that could have done so for long.
func TestPreemptsServices(t *testing.T) {
	now := func(g *clustertest.Gang) { g.Age = 30 * time.Second }
	check(t, []testCase{
		{name: "a service of a lower priority", code: answer.NodesBusy, exit: 3, first: "^0 of 16 GPUs free", wantText: []string{"its scheduler may preempt Deployment serving/web .priority 0 < 50., and has not yet"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Serves("web", 8, "n1", "n2").Add(gangOf(2, 8, spec(priority(50)), now))
		}},
		{name: "it has not been preempted for long", code: answer.NodesBusy, exit: 5, first: "^Deployment serving/web holds 16 GPUs on n1, n2 and never ends", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Serves("web", 8, "n1", "n2").Add(gangOf(2, 8, spec(priority(50))))
		}},
		{name: "the gang may not preempt", code: answer.NodesBusy, exit: 5, build: func(c *clustertest.Cluster) {
			never, high := corev1.PreemptNever, int32(50)
			c.Nodes(2, 8).Serves("web", 8, "n1", "n2").Add(gangOf(2, 8, now, spec(func(p *corev1.PodSpec) { p.Priority, p.PreemptionPolicy = &high, &never })))
		}},
		{name: "a service of its own priority", code: answer.NodesBusy, exit: 5, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Serves("web", 8, "n1", "n2").Add(gangOf(2, 8, now))
		}},
		{name: "once a job has ended", code: answer.NodesBusy, exit: 3, wantText: []string{"preempting Deployment serving/web .priority 0 < 50. would not make room for all before other jobs have ended"}, build: func(c *clustertest.Cluster) {
			high := other("a", 8, "n2")
			spec(priority(100))(&high)
			c.Nodes(2, 8).Serves("web", 8, "n1").Add(high).Add(gangOf(2, 8, spec(priority(50))))
		}},
		{name: "a service on a node that has to be opened, too", code: answer.NodeNotReady, exit: 5, also: []answer.Code{answer.NodesBusy}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Serves("web", 8, "n1").Add(gangOf(2, 8, spec(priority(50)), now))
			c.S.Nodes[0].Spec.Unschedulable = true
		}},
	})
}
