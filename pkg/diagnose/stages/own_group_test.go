package stages_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

// adopted has Volcano make a PodGroup of its own, for one member, for the pods of the gang, as it does for pods that name none which it reads.
func adopted(c *clustertest.Cluster, g clustertest.Gang) {
	c.Queue("default", "Open", nil)
	c.Add(g)
	ref := c.S.Pods[len(c.S.Pods)-1].OwnerReferences[0]
	own := "podgroup-" + string(ref.UID)
	for _, p := range c.S.Pods {
		if metav1.IsControlledBy(p, &metav1.ObjectMeta{UID: ref.UID}) {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, "scheduling.k8s.io/group-name", own)
		}
	}
	u := c.Object(map[string]any{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": map[string]any{"namespace": "team", "name": own, "uid": "own"},
		"spec": map[string]any{"minMember": int64(1), "queue": "default"}, "status": map[string]any{"phase": "Running"}})
	u.SetOwnerReferences([]metav1.OwnerReference{ref})
}

// A PodGroup that Volcano makes for pods that name none is no minimum: that of another group which they name, or of the job, counts.
func TestGroupOfScheduler(t *testing.T) {
	sole := []answer.Code{answer.MemberLost, answer.BelowQuorum, answer.MinMemberTooHigh}
	check(t, []testCase{
		{name: "they name one that it does not read", code: answer.GangBypassed, exit: 7, first: "1/2 members were placed one by one by volcano, which does not read their PodGroup.scheduling.x-k8s.io gang", never: sole,
			wantText: []string{"set it to gang-scheduler", "PodGroup.scheduling.x-k8s.io gang is not read, by scheduler volcano"}, not: []string{"no pod names"}, build: func(c *clustertest.Cluster) {
				c.Schedules("volcano")
				c.Nodes(2, 8).Runs("a", 8, "n2")
				adopted(c, gangOf(2, 8, half, scheduledBy("volcano"), func(g *clustertest.Gang) { g.Kind = "Job" }))
			}},
		{name: "the job states its minimum, and its operator makes no group", code: answer.GangBypassed, exit: 7, first: "3/4 members were placed one by one by volcano, as nothing that it reads declares their gang of 4: they hold 24 GPUs while worker-3 waits", never: sole,
			wantText: []string{"holds no member back", "runs without --gang-scheduler-name"}, not: []string{"which counts"}, build: func(c *clustertest.Cluster) {
				c.Schedules("volcano").GangScheduler("")
				c.Nodes(4, 8).Runs("a", 8, "n4")
				adopted(c, gangOf(4, 8, ungrouped, scheduledBy("volcano"), job(set(int64(4), "spec", "runPolicy", "schedulingPolicy", "minAvailable")), func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2", "n3"} }))
			}},
		{name: "the job needs fewer", exit: 0, build: func(c *clustertest.Cluster) {
			c.Schedules("volcano").GangScheduler("")
			c.Nodes(2, 8).Runs("a", 8, "n2")
			adopted(c, gangOf(2, 8, ungrouped, half, scheduledBy("volcano"), job(set(int64(1), "spec", "runPolicy", "schedulingPolicy", "minAvailable"))))
		}},
		{name: "pods of a Job are worth something alone", exit: 0, build: func(c *clustertest.Cluster) {
			c.Schedules("volcano")
			c.Nodes(2, 8).Runs("a", 8, "n2")
			adopted(c, gangOf(2, 8, ungrouped, half, scheduledBy("volcano"), func(g *clustertest.Gang) { g.Kind = "Job" }))
		}},
		{name: "the field of Kubernetes and a label", code: answer.Fits, exit: 3, wantText: []string{"PodGroup.scheduling.x-k8s.io other is not read by scheduler default-scheduler"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			c.Object(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": map[string]any{"namespace": "team", "name": "other", "uid": "other"}, "spec": map[string]any{"minMember": int64(3)}})
			c.Add(gangOf(2, 8, speaks(c, gang.Native, "default-scheduler"), young, pods(func(_ int, p *corev1.Pod) { p.Labels["scheduling.x-k8s.io/pod-group"] = "other" })))
		}},
		{name: "one that runs names the other, too", exit: 0, wantText: []string{"PodGroup.scheduling.x-k8s.io gang is not read by scheduler volcano"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, speaks(c, gang.Volcano, "volcano"), func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }, pods(func(_ int, p *corev1.Pod) { p.Labels["scheduling.x-k8s.io/pod-group"] = "gang" })))
			c.Object(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": map[string]any{"namespace": "team", "name": "gang", "uid": "other"}, "spec": map[string]any{"minMember": int64(2)}})
		}},
	})
}

// Volcano takes the queue of a group that it makes from the pods: what the job says of that counts for nothing.
func TestQueueOfGroupOfScheduler(t *testing.T) {
	of := func(asked string) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Schedules("volcano")
			c.Queue("research", "Open", nil)
			c.Nodes(2, 8)
			adopted(c, gangOf(2, 8, ungrouped, scheduledBy("volcano"), func(g *clustertest.Gang) {
				g.Kind = "Job"
				g.BatchJob = func(j *batchv1.Job) { j.Annotations = map[string]string{"scheduling.volcano.sh/queue-name": asked} }
			}))
			set(map[string]any{"phase": "Pending"}, "status")(c.S.Custom[kindOf("scheduling.volcano.sh", "PodGroup")][0].Object)
			set(map[string]any{"cpu": "4"}, "spec", "capability")(c.S.Custom[kindOf("scheduling.volcano.sh", "Queue")][1].Object)
		}
	}
	check(t, []testCase{
		{name: "it asks for another one", code: answer.QueueTooSmall, exit: 4, first: "queue default allows 4 cpu .*; its Job asks for queue research in an annotation of its own", wantText: []string{"belongs into the metadata of its pod template"}, fix: "move it to queue research", build: of("research")},
		{name: "it asks for one that does not exist", code: answer.QueueTooSmall, exit: 6, not: []string{"asks for queue"}, build: of("resaerch")},
		{name: "it asks for none", code: answer.QueueTooSmall, exit: 6, not: []string{"asks for queue"}, build: of("")},
	})
}

// YuniKorn keeps room by placeholders of its own: it needs no pods for them.
func TestYuniKornCountsNoPods(t *testing.T) {
	never := []answer.Code{answer.MinMemberTooHigh, answer.BelowQuorum}
	of := func(kind string, build func(*clustertest.Gang)) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(gangOf(2, 8, speaks(c, gang.YuniKorn, "yunikorn"), young, build, func(g *clustertest.Gang) { g.Kind, g.Min = kind, 4 }))
		}
	}
	check(t, []testCase{
		{name: "a job makes fewer than its task groups have", code: answer.Fits, exit: 3, never: never, wantText: []string{"2 placeholders besides its own pods"}, build: of("Job", func(*clustertest.Gang) {})},
		{name: "a scheduler that counts pods", code: answer.MinMemberTooHigh, exit: 4, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(gangOf(2, 8, speaks(c, gang.YuniKorn, clustertest.Scheduler), func(g *clustertest.Gang) { g.Min = 4 }))
		}},
	})
}
