package stages_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

// dialects are all in which a gang may be declared, and the scheduler that reads each. Only some have objects.
var dialects = []struct {
	dialect   gang.Dialect
	scheduler string
	object    string // the group of PodGroups
}{
	{gang.SchedulerPlugins, clustertest.Scheduler, "scheduling.x-k8s.io"}, {gang.Volcano, "volcano", "scheduling.volcano.sh"}, {gang.KubeBatch, "kube-batch", "scheduling.incubator.k8s.io"},
	{gang.Koordinator, "koord-scheduler", "scheduling.sigs.k8s.io"}, {gang.KAI, "kai-scheduler", "scheduling.run.ai"}, {gang.Native, "default-scheduler", "scheduling.k8s.io"},
	{gang.Labels, "default-scheduler", ""}, {gang.YuniKorn, "yunikorn", ""}, {gang.PDB, "kube-batch", ""}, {gang.Kueue, clustertest.Scheduler, ""},
}

// speaks declares the gang in a dialect, in a cluster in which its scheduler is alive.
func speaks(c *clustertest.Cluster, d gang.Dialect, scheduler string) func(*clustertest.Gang) {
	if scheduler != clustertest.Scheduler {
		c.Schedules(scheduler).GangScheduler("")
	}
	return func(g *clustertest.Gang) {
		g.Dialect, g.Scheduler, g.Queue = d, scheduler, "q"
		switch d {
		case gang.Volcano:
			c.Queue("q", "Open", nil)
		case gang.Kueue:
			g.Queue = "lq"
		default: // no queue is needed
		}
	}
}

// What is true of a gang is reported in every dialect.
func TestDialects(t *testing.T) {
	for _, d := range dialects {
		young := func(g *clustertest.Gang) { g.Age = 20 * time.Second }
		tooMany := testCase{name: string(d.dialect) + ": more members than the job makes", code: answer.MinMemberTooHigh, exit: 4, first: "3 members.*makes 2|2 .*3", never: []answer.Code{answer.BelowQuorum}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(2, 8, speaks(c, d.dialect, d.scheduler), young, func(g *clustertest.Gang) { g.Min = 3 }))
		}}
		if d.scheduler == "yunikorn" { // which counts no pods
			tooMany.code, tooMany.exit, tooMany.first = answer.Fits, 3, "room for all 2 members"
		}
		check(t, []testCase{
			{name: string(d.dialect) + ": fits", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(gangOf(2, 8, speaks(c, d.dialect, d.scheduler), young))
			}},
			{name: string(d.dialect) + ": half of it is enough", code: answer.Fits, exit: 3, first: "2 of 4 members .it needs 2.", build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(gangOf(4, 8, speaks(c, d.dialect, d.scheduler), young, func(g *clustertest.Gang) { g.Min = 2 }))
			}},
			{name: string(d.dialect) + ": busy", code: answer.NodesBusy, exit: 3, first: "0 of 16 GPUs free on the 2 nodes", wantText: []string{"TFJob research/a holds 16 GPUs"}, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8, speaks(c, d.dialect, d.scheduler)))
			}},
			tooMany,
			{name: string(d.dialect) + ": half placed and the rest has no room", code: answer.MemberLost, exit: 7, first: "1/2 members have a node", wantText: []string{"8 GPUs"}, never: []answer.Code{answer.GangBypassed}, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Runs("a", 8, "n2").Add(gangOf(2, 8, speaks(c, d.dialect, d.scheduler), func(g *clustertest.Gang) { g.Nodes = []string{"n1"} }))
				c.S.Nodes[0].Labels["alibabacloud.com/nodepool-id"] = "np" // whose default scheduler reads labels
			}},
			{name: string(d.dialect) + ": its scheduler is dead", code: answer.SchedulerDown, exit: 5, first: "scheduler " + d.scheduler + " is down.*9m", build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(gangOf(2, 8, speaks(c, d.dialect, d.scheduler)))
				for _, l := range c.S.Leases {
					at := clustertest.Ago(9 * time.Minute)
					l.Spec.RenewTime.Time = at.Time
				}
			}},
		})
		if d.object == "" {
			continue
		}
		check(t, []testCase{
			{name: string(d.dialect) + ": the object is not there", code: answer.PodGroupMissing, exit: 4, first: "PodGroup gang, which does not exist in namespace team", fix: "create PodGroup gang for 2 members", build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(gangOf(2, 8, speaks(c, d.dialect, d.scheduler)))
				c.S.Server.Resources = append(c.S.Server.Resources, "podgroups."+d.object+"/v1")
				c.S.Custom[kindOf(d.object, "PodGroup")] = nil
			}},
			{name: string(d.dialect) + ": the object is of a job that is gone", code: answer.PodGroupForeign, exit: 4, first: "a job that is gone", build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(gangOf(2, 8, speaks(c, d.dialect, d.scheduler)))
				u := c.S.Custom[kindOf(d.object, "PodGroup")][0]
				refs := u.GetOwnerReferences()
				refs[0].UID = "gone"
				u.SetOwnerReferences(refs)
			}},
		})
	}
}

// Every kind of job is read: roles, members, minimum.
func TestKinds(t *testing.T) {
	for _, kind := range []string{"TFJob", "PyTorchJob", "MPIJob", "Job"} {
		of := func(g *clustertest.Gang) {
			if g.Kind = kind; kind == "MPIJob" {
				g.More = []clustertest.Role{{Name: "Launcher", Replicas: 1}}
			}
		}
		total := "2"
		if kind == "MPIJob" {
			total = "3"
		}
		check(t, []testCase{
			{name: kind + ": fits", code: answer.Fits, exit: 3, first: "all " + total + " members", build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(gangOf(2, 8, of, func(g *clustertest.Gang) { g.Age = 20 * time.Second }))
			}},
			{name: kind + ": busy", code: answer.NodesBusy, exit: 3, first: "2 workers with 8 GPUs each", build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Runs("a", 8, "n1").Add(gangOf(2, 8, of))
			}},
			{name: kind + ": a job of its kind holds the room", code: answer.NodesBusy, exit: 3, wantText: []string{kind + " research/a holds 8 GPUs on n1"}, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(gangOf(1, 8, of, func(g *clustertest.Gang) { g.Namespace, g.Name, g.Nodes, g.More = "research", "a", []string{"n1"}, nil }, job(set("Running", "spec", "runPolicy", "cleanPodPolicy")))).Add(gangOf(2, 8))
			}},
			{name: kind + ": runs", exit: 0, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(gangOf(2, 8, of, func(g *clustertest.Gang) {
					g.Nodes = []string{"n1", "n2"}
					for i := range g.More {
						g.More[i].Nodes = []string{"n1"}
					}
				}))
			}},
			{name: kind + ": too big", code: answer.TooBig, exit: 6, build: func(c *clustertest.Cluster) { c.Nodes(2, 8).Add(gangOf(3, 8, of)) }},
		})
	}
	check(t, []testCase{
		{name: "the launcher waits for its own kind of node", code: answer.SelectorNoMatch, exit: 4, first: "pool=head", wantText: []string{"nodes have pool: gpu"}, build: func(c *clustertest.Cluster) {
			c.Node("n1", 8).Labels["pool"] = "gpu"
			c.Add(gangOf(1, 8, func(g *clustertest.Gang) {
				g.Kind, g.More = "MPIJob", []clustertest.Role{{Name: "Launcher", Replicas: 1, Spec: func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"pool": "head"} }}}
			}))
		}},
		{name: "pods of a Job that declares no gang are worth something alone", exit: 0, wantText: []string{"1 of 2 members are not up"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8, ungrouped, func(g *clustertest.Gang) { g.Kind, g.Nodes = "Job", []string{"n1"} }))
		}},
		{name: "labels of an operator of 2018", code: answer.NodesBusy, exit: 3, first: "0 of 8 GPUs free", never: []answer.Code{answer.BelowQuorum}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(2, 4, pods(func(i int, p *corev1.Pod) {
				p.Labels = map[string]string{"group_name": "kubeflow.org", "tf_job_name": "gang", "tf-replica-type": "worker", "tf-replica-index": []string{"0", "1"}[i], "scheduling.x-k8s.io/pod-group": "gang"}
			})))
		}},
	})
}

func TestGroup(t *testing.T) {
	check(t, []testCase{
		{name: "the group is in another namespace", code: answer.PodGroupMissing, exit: 4, wantText: []string{"one of that name in namespace research"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8))
			c.S.Custom[kindOf("scheduling.x-k8s.io", "PodGroup")][0].SetNamespace("research")
		}},
		{name: "the group has nearly that name", code: answer.PodGroupMissing, exit: 4, wantText: []string{"did you mean gagn"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8))
			c.S.Custom[kindOf("scheduling.x-k8s.io", "PodGroup")][0].SetName("gagn")
		}},
		{name: "a group that something else owns", code: answer.Fits, exit: 3, never: []answer.Code{answer.PodGroupForeign}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Age = 20 * time.Second }))
			u := c.S.Custom[kindOf("scheduling.x-k8s.io", "PodGroup")][0]
			refs := u.GetOwnerReferences()
			refs[0].Kind, refs[0].Name, refs[0].UID = "JobSet", "set", "set"
			u.SetOwnerReferences(refs)
		}},
		{name: "a label that no scheduler reads", code: answer.Fits, exit: 3, wantText: []string{"carry scheduling.x-k8s.io/podgroup.*did you mean scheduling.x-k8s.io/pod-group"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, ungrouped, func(g *clustertest.Gang) { g.Age = 20 * time.Second }, pods(func(_ int, p *corev1.Pod) { p.Labels["scheduling.x-k8s.io/podgroup"] = "gang" })))
		}},
		{name: "an annotation as a label", code: answer.Fits, exit: 3, wantText: []string{"scheduling.k8s.io/group-name in the wrong place"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, ungrouped, func(g *clustertest.Gang) { g.Age = 20 * time.Second }, pods(func(_ int, p *corev1.Pod) { p.Labels["scheduling.k8s.io/group-name"] = "gang" })))
		}},
		{name: "a group that no pod names", code: answer.Fits, exit: 3, wantText: []string{"PodGroup.scheduling.x-k8s.io gang, of which 2 members are needed, waits for pods, and none of the job names it"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, ungrouped, func(g *clustertest.Gang) { g.Age = 20 * time.Second }))
			c.Object(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": map[string]any{"name": "gang", "namespace": "team"}, "spec": map[string]any{"minMember": int64(2)}})
		}},
		{name: "no label, no group: nothing to report", code: answer.Fits, exit: 3, not: []string{"did you mean", "one by one", "wrong place"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, ungrouped, func(g *clustertest.Gang) { g.Age = 20 * time.Second }))
		}},
		{name: "a role has fewer members than its minimum", code: answer.MinMemberTooHigh, exit: 4, first: "3 members of Worker, but the job makes 2", fix: "set minTaskMember.worker to 2", build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Volcano, g.Group = "q", set(map[string]any{"worker": int64(3)}, "spec", "minTaskMember")
				g.More = []clustertest.Role{{Name: "PS", Replicas: 2}}
			}))
		}},
		{name: "a role has fewer pods than its minimum", code: answer.BelowQuorum, exit: 3, first: "0 of 1 pods of PS exist, and the gang needs 1: the controller is creating them", build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(4, 8).Add(gangOf(3, 8, func(g *clustertest.Gang) {
				g.Age, g.Min = 20*time.Second, 3
				g.Volcano, g.Group = "q", set(map[string]any{"worker": int64(1), "ps": int64(1)}, "spec", "minTaskMember")
				g.More = []clustertest.Role{{Name: "PS", Replicas: 1, Missing: 1}}
			}))
		}},
		{name: "a task that no pod is of", code: answer.MinMemberTooHigh, exit: 4, first: "wants 2 members of task wroker, and no pod is of that: they are of worker", fix: "write worker instead of wroker in minTaskMember of PodGroup gang", build: withTask("volcano", "wroker")},
		{name: "a task whose name has another case, for Volcano", code: answer.MinMemberTooHigh, exit: 4, first: "task Worker, and no pod is of that: they are of worker", wantText: []string{"scheduler volcano compares the names of tasks exactly"}, fix: "write worker instead of Worker", build: withTask("volcano", "Worker")},
		{name: "a task whose name has another case, for our scheduler", code: answer.Fits, exit: 3, build: withTask(clustertest.Scheduler, "Worker")},
		{name: "a task that no pod is like", code: answer.MinMemberTooHigh, exit: 4, fix: "take task launcher out of minTaskMember", build: withTask(clustertest.Scheduler, "launcher")},
		{name: "pods without a task", code: answer.MinMemberTooHigh, exit: 4, first: "they name none .annotation volcano.sh/task-spec.", build: func(c *clustertest.Cluster) {
			withTask("volcano", "worker")(c)
			for _, p := range c.S.Pods {
				delete(p.Annotations, "volcano.sh/task-spec")
			}
		}},
		{name: "roles' minimums that add up to more than the group requests", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Age = 10 * time.Second
				g.Volcano, g.Group = "q", set(map[string]any{"worker": int64(3)}, "spec", "minTaskMember")
			}))
		}},
		{name: "the job requests too much, and nobody makes its pods", code: answer.OperatorMissing, exit: 5, also: []answer.Code{answer.MinMemberTooHigh}, build: func(c *clustertest.Cluster) {
			c.S.Deployments = c.S.Deployments[1:]
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, job(set(map[string]any{"schedulingPolicy": map[string]any{"minAvailable": int64(5)}}, "spec", "runPolicy"))))
		}},
		{name: "the job requests too much before there is a group", code: answer.MinMemberTooHigh, exit: 4, first: "minAvailable wants 5 members, but the job makes 2", fix: "minAvailable to 2", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, func(g *clustertest.Gang) { g.Age = 10 * time.Second }, job(set(int64(5), "spec", "runPolicy", "schedulingPolicy", "minAvailable"))))
		}},
		{name: "job and group disagree", code: answer.Fits, exit: 3, wantText: []string{"the job requests a minimum of 1, but PodGroup.scheduling.x-k8s.io gang has 2"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Age = 10 * time.Second }, job(set(int64(1), "spec", "runPolicy", "schedulingPolicy", "minAvailable"))))
		}},
		{name: "pods disagree on the minimum", code: answer.Fits, exit: 3, wantText: []string{`min-available`}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, speaks(c, gang.Labels, "default-scheduler"), func(g *clustertest.Gang) { g.Age = 10 * time.Second }, pods(func(i int, p *corev1.Pod) {
				if i == 1 {
					p.Labels["pod-group.scheduling.sigs.k8s.io/min-available"] = "two"
				}
			})))
		}},
		{name: "some pods are made, others are not refused", code: answer.BelowQuorum, exit: 3, first: "1 of 2 pods exist, and the gang needs 2.*10m", wantText: []string{"Worker 1/2", "logs deployment/training-operator"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Missing = 1 }))
		}},
		{name: "a controller is silent for long", code: answer.BelowQuorum, exit: 5, first: "has not made the others in 3h and does not report why", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Age = 3 * time.Hour }))
		}},
		{name: "the MPI operator makes a PodGroup first", code: answer.PodGroupMissing, exit: 5, first: "the operator makes a PodGroup first and has made none", build: func(c *clustertest.Cluster) {
			c.GangScheduler("").Deployment("mpi-operator", "mpi-operator", "mpioperator/mpi-operator:0.6.0", "--gang-scheduling=gang")
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, func(g *clustertest.Gang) { g.Kind = "MPIJob" }, job(set("kubeflow.org/v2beta1", "apiVersion"))))
		}},
		{name: "the MPI operator makes a PodGroup first, and its queue is closed", code: answer.QueueClosed, exit: 5, first: "queue vision is Closed, so the PodGroup of gang cannot be created", fix: "open queue vision", never: []answer.Code{answer.PodGroupMissing, answer.BelowQuorum},
			build: func(c *clustertest.Cluster) {
				c.GangScheduler("").Deployment("mpi-operator", "mpi-operator", "mpioperator/mpi-operator:0.6.0", "--gang-scheduling=volcano")
				c.Queue("vision", "Closed", nil)
				c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, func(g *clustertest.Gang) { g.Kind = "MPIJob" }, job(func(j map[string]any) {
					set("kubeflow.org/v2beta1", "apiVersion")(j)
					set("vision", "spec", "runPolicy", "schedulingPolicy", "queue")(j)
				})))
			}},
		{name: "the launcher comes after the workers, which wait for it", code: answer.BelowQuorum, exit: 4, first: "so it waits for itself", fix: "launcherCreationPolicy AtStartup", wantText: []string{"fix: set minMember to 3"}, build: func(c *clustertest.Cluster) {
			g := launcherLast()
			g.NoGroup, g.Scheduler, g.Min = false, clustertest.Scheduler, 4
			c.Nodes(4, 8).Add(g)
		}},
		{name: "a task comes after others that wait for it", code: answer.BelowQuorum, exit: 4, first: "so it waits for itself", fix: "set minMember to 2", wantText: []string{"only when those of worker and ps run"}, build: func(c *clustertest.Cluster) {
			g := gangOf(1, 8, speaks(c, gang.Volcano, "volcano"), func(g *clustertest.Gang) {
				g.Kind, g.More = clustertest.VolcanoJob, []clustertest.Role{{Name: "PS", Replicas: 1}, {Name: "Report", Replicas: 1, Missing: 1}}
			}, job(func(j map[string]any) {
				for _, task := range j["spec"].(map[string]any)["tasks"].([]any) {
					if task := task.(map[string]any); task["name"] == "report" {
						task["dependsOn"] = map[string]any{"name": []any{"worker", "ps"}}
					}
				}
			}))
			c.Nodes(2, 8).Add(g)
		}},
		{name: "the minimum of a task that comes after others which wait for it", code: answer.BelowQuorum, exit: 4, first: "0 of 1 pods of report exist.*so it waits for itself", fix: "set minAvailable of task report to 0", never: []answer.Code{answer.MinMemberTooHigh}, build: func(c *clustertest.Cluster) {
			g := gangOf(2, 8, speaks(c, gang.Volcano, "volcano"), func(g *clustertest.Gang) {
				g.Kind, g.Min, g.More = clustertest.VolcanoJob, 2, []clustertest.Role{{Name: "Report", Replicas: 1, Missing: 1}}
				g.Group = set(map[string]any{"worker": int64(1), "report": int64(1)}, "spec", "minTaskMember")
			}, job(func(j map[string]any) {
				j["spec"].(map[string]any)["tasks"].([]any)[1].(map[string]any)["dependsOn"] = map[string]any{"name": []any{"worker"}}
			}))
			c.Nodes(2, 8).Add(g)
		}},
		{name: "the Job of an earlier attempt is still there", code: answer.BelowQuorum, exit: 5, first: "the controller makes the others when Job gang-worker-0 is gone, which has been in its deletion for 25m", not: []string{"does not report why"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, func(g *clustertest.Gang) { g.Kind, g.Age = "JobSet", time.Hour }))
			at := clustertest.Ago(25 * time.Minute)
			c.S.Jobs[0].DeletionTimestamp = &at
		}},
		{name: "pods may name a Workload of Kubernetes 1.35", code: answer.Fits, exit: 3, wantText: []string{"spec.workloadRef of pods, by which Kubernetes 1.35 declares gangs: it is not followed"}, build: func(c *clustertest.Cluster) {
			c.S.Server.Resources = append(c.S.Server.Resources, "workloads.scheduling.k8s.io/v1alpha1")
			c.Nodes(2, 8).Add(gangOf(2, 8, ungrouped, young))
		}},
		{name: "pods are being made, which takes a while", code: answer.BelowQuorum, exit: 3, first: "1 of 2 pods exist.*is creating them", not: []string{"does not report why"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Missing = 1 }, pods(func(_ int, p *corev1.Pod) { p.CreationTimestamp = clustertest.Ago(3 * time.Second) })))
		}},
		{name: "enough pods for the minimum", code: answer.Fits, exit: 3, never: []answer.Code{answer.BelowQuorum}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(3, 8, func(g *clustertest.Gang) { g.Min, g.Missing, g.Age = 2, 1, 20*time.Second }))
		}},
		{name: "the create of the group is refused for its queue", code: answer.QueueClosed, exit: 5, first: "queue q is Closed, so the PodGroup of gang cannot be created", wantText: []string{"queried just now"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Closed", nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, job(set("q", "spec", "runPolicy", "schedulingPolicy", "queue"))))
			c.S.Probes = []snapshot.Probe{{Kind: "PodGroup", Namespace: "team", Name: "gang", Code: 403, Message: "can only submit PodGroup to queue with state `Open`, queue `q` status is `Closed`"}}
		}},
		{name: "the create of the group is refused for a queue that does not exist", code: answer.QueueNotFound, exit: 4, first: `queue "visoin" does not exist, so the PodGroup of gang cannot be created; there are: default, vision`,
			wantText: []string{"queried just now: .*unable to find queue", "did you mean vision"}, never: []answer.Code{answer.PodGroupMissing}, fix: "use queue vision", build: refusedForQueue("visoin",
				`admission webhook "validatepodgroup.volcano.sh" denied the request: unable to find queue: queue.scheduling.volcano.sh "visoin" not found`)},
		{name: "a refusal for a queue that has come since", code: answer.QueueNotFound, exit: 4, first: "PodGroup of gang cannot be created in queue vision: .*not found", build: refusedForQueue("vision",
			`failed to get queue for podgroup gang: queues.scheduling.volcano.sh "vision" not found`)},
		{name: "the create of the group is refused for a queue that has others below it", code: answer.QueueNotLeaf, exit: 4, first: "queue vision has queues below it .leaf.", fix: "use queue leaf", build: func(c *clustertest.Cluster) {
			refusedForQueue("vision", "can only submit workload to leaf queue, queue `vision` has 1 child queues")(c)
			set("vision", "spec", "parent")(c.Queue("leaf", "Open", nil).Object)
		}},
		{name: "the create of the group is refused for something else that is called queue", code: answer.PodGroupMissing, exit: 5, first: "cannot be created: .*queue-policy", build: refusedForQueue("vision",
			`ValidatingAdmissionPolicy 'queue-policy' denied request: label team not found`)},
		{name: "a quota has no PodGroup left, and nothing uses those that there are", code: answer.NSQuota, exit: 4, first: "quota objs of namespace team is used up: 2 of 2 podgroups.scheduling.x-k8s.io used, and the PodGroup of gang needs 1",
			wantText: []string{"fix: raise count/podgroups.scheduling.x-k8s.io of quota objs to 3"}, fix: "delete left, PodGroups that no job and no pod uses any more", build: func(c *clustertest.Cluster) {
				c.Nodes(4, 8).Add(clustertest.Gang{Name: "other", Workers: 1, GPUs: 8, Nodes: []string{"n1"}})
				c.Object(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": map[string]any{"name": "left", "namespace": "team", "creationTimestamp": clustertest.Now.Add(-time.Hour).Format(time.RFC3339)}, "spec": map[string]any{"minMember": int64(2)}, "status": map[string]any{"phase": "Finished"}})
				quotaOfGroups(c)
			}},
		{name: "a quota has no PodGroup left, and others use them", code: answer.NSQuota, exit: 3, first: "2 of 2", not: []string{"fix: delete"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "other", Workers: 1, GPUs: 8, Nodes: []string{"n1"}}).Add(clustertest.Gang{Name: "third", Workers: 1, GPUs: 8, Nodes: []string{"n2"}})
			quotaOfGroups(c)
		}},
		{name: "the webhook for PodGroups does not answer", code: answer.WebhookDown, exit: 5, first: "webhook mutatepodgroup.volcano.sh does not answer, and without it no PodGroup is accepted",
			wantText: []string{"Service volcano-system/volcano-admission-service", "Deployment volcano-system/volcano-admission has 0 of 1 pods ready"}, never: []answer.Code{answer.PodGroupMissing}, build: func(c *clustertest.Cluster) {
				c.Deployment("volcano-system", "volcano-admission", "volcanosh/vc-webhook-manager:v1.12").Status.ReadyReplicas = 0
				c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped))
				c.S.Probes = []snapshot.Probe{{Kind: "PodGroup", Namespace: "team", Name: "gang", Code: 500, Message: `Internal error occurred: failed calling webhook "mutatepodgroup.volcano.sh": failed to call webhook: Post "https://volcano-admission-service.volcano-system.svc:443/podgroups/mutate?timeout=10s": connect: connection refused`}}
			}},
		{name: "a webhook does not answer that is not among those that are seen", code: answer.WebhookDown, exit: 5, not: []string{"Deployment infra/", "served by"}, build: func(c *clustertest.Cluster) {
			c.Deployment("infra", "hook", "example.com/hook:v1").Status.ReadyReplicas = 0
			webhook(c, "other.example.com", func(map[string]any) {})
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped))
			c.S.Probes = []snapshot.Probe{{Kind: "PodGroup", Namespace: "team", Name: "gang", Code: 500, Message: `Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: Post "https://hook.infra.svc:443/": EOF`}}
		}},
		{name: "a Deployment whose name only begins as that of the Service does", code: answer.WebhookDown, exit: 5, not: []string{"Deployment infra/"}, build: func(c *clustertest.Cluster) {
			c.Deployment("infra", "hook", "example.com/hook:v1").Status.ReadyReplicas = 0
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped))
			c.S.Probes = []snapshot.Probe{{Kind: "PodGroup", Namespace: "team", Name: "gang", Code: 500, Message: `Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: Post "https://hook-of-others.infra.svc:443/": EOF`}}
		}},
		{name: "a queue was closed when another job of the name was refused, and is open again", code: answer.PodGroupMissing, exit: 5, never: []answer.Code{answer.QueueClosed}, build: closedBefore(15 * time.Minute)},
		{name: "a queue was closed when it was refused, and is open again", code: answer.BelowQuorum, exit: 3, first: "was refused, last 5m ago, for its queue, which is open now: its controller tries again within 11m",
			never: []answer.Code{answer.QueueClosed, answer.PodGroupMissing}, build: closedBefore(5 * time.Minute)},
		{name: "PodGroups are not served", code: answer.PodGroupMissing, exit: 5, first: "for scheduler volcano, and the cluster does not serve them: CRD podgroups.scheduling.volcano.sh is not installed", build: func(c *clustertest.Cluster) {
			c.Schedules("volcano").GangScheduler("volcano")
			c.S.Server.Resources = []string{"tfjobs.kubeflow.org/v1", "podgroups.scheduling.x-k8s.io/v1alpha1"}
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, scheduledBy("volcano")))
		}},
		{name: "the PodGroup of an earlier job is there before any pod", code: answer.PodGroupForeign, exit: 4, first: "PodGroup.scheduling.volcano.sh gang belongs to a job that is gone", wantText: []string{"delete podgroup.scheduling.volcano.sh gang"},
			not: []string{"one by one", "has made none"}, build: func(c *clustertest.Cluster) {
				c.Schedules("volcano").GangScheduler("volcano")
				c.Queue("q", "Open", nil)
				c.Nodes(2, 8).Add(gangOf(2, 8, none, scheduledBy("volcano"), func(g *clustertest.Gang) { g.Volcano = "q" }))
				u := c.S.Custom[kindOf("scheduling.volcano.sh", "PodGroup")][0]
				refs := u.GetOwnerReferences()
				refs[0].UID = "gone"
				u.SetOwnerReferences(refs)
			}},
		{name: "several API groups serve podgroups", code: answer.PodGroupMissing, exit: 4, wantText: []string{"get podgroups.scheduling.x-k8s.io -o wide"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8))
			delete(c.S.Custom, kindOf("scheduling.x-k8s.io", "PodGroup"))
		}},
		{name: "the queue that refused it is not to be seen", code: answer.QueueClosed, exit: 5, first: "queue `q` status is `Closed`", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, job(set("q", "spec", "runPolicy", "schedulingPolicy", "queue"))))
			c.S.Denied = []snapshot.Denial{{Resource: "queues.scheduling.volcano.sh"}}
			c.S.Probes = []snapshot.Probe{{Kind: "PodGroup", Namespace: "team", Name: "gang", Code: 403, Message: "can only submit PodGroup to queue with state `Open`, queue `q` status is `Closed`"}}
		}},
	})
}

// quotaOfGroups is a quota of two PodGroups that refuses that of the gang.
func quotaOfGroups(c *clustertest.Cluster) {
	hard := clustertest.List("count/podgroups.scheduling.x-k8s.io", "2")
	c.Put(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "objs"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: hard}})
	c.Add(gangOf(2, 8, none, ungrouped))
	c.S.Probes = []snapshot.Probe{{Kind: "PodGroup", Namespace: "team", Name: "gang", Code: 403, Message: `podgroups.scheduling.x-k8s.io "gang" is forbidden: exceeded quota: objs, requested: count/podgroups.scheduling.x-k8s.io=1, used: count/podgroups.scheduling.x-k8s.io=2, limited: count/podgroups.scheduling.x-k8s.io=2`}}
}

// withTask is a cluster with a gang of Volcano's format that has a minimum for a task.
func withTask(scheduler, task string) func(*clustertest.Cluster) {
	return func(c *clustertest.Cluster) {
		if scheduler != clustertest.Scheduler {
			c.Schedules(scheduler)
		}
		c.GangScheduler("")
		c.Queue("q", "Open", nil)
		c.Nodes(2, 8).Add(gangOf(2, 8, scheduledBy(scheduler), func(g *clustertest.Gang) {
			g.Age, g.Volcano, g.Group = 20*time.Second, "q", set(map[string]any{task: int64(2)}, "spec", "minTaskMember")
		}))
	}
}

// closedBefore is a cluster in which a queue is open that was closed when the PodGroup of a gang could not be created, so long ago.
func closedBefore(ago time.Duration) func(*clustertest.Cluster) {
	return func(c *clustertest.Cluster) {
		c.Schedules("volcano").GangScheduler("volcano")
		c.Queue("q", "Open", nil)
		c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, scheduledBy("volcano"), job(set("q", "spec", "runPolicy", "schedulingPolicy", "queue"))))
		c.Event("TFJob", "team", "gang", "tfjob-controller", "FailedCreatePodGroup", "can only submit PodGroup to queue with state `Open`, queue `q` status is `Closed`", ago)
	}
}

// refusedForQueue is a cluster in which the PodGroup of a gang cannot be created, where queues default and vision exist.
func refusedForQueue(queue, message string) func(*clustertest.Cluster) {
	return func(c *clustertest.Cluster) {
		c.Queue("default", "Open", nil)
		c.Queue("vision", "Open", nil)
		c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, job(set(queue, "spec", "runPolicy", "schedulingPolicy", "queue"))))
		c.S.Probes = []snapshot.Probe{{Kind: "PodGroup", Namespace: "team", Name: "gang", Code: 403, Message: message}}
	}
}

// elastic adds a quota of scheduler-plugins.
func elastic(c *clustertest.Cluster, namespace, name string) {
	c.Object(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": map[string]any{"namespace": namespace, "name": name}, "spec": map[string]any{"max": map[string]any{"nvidia.com/gpu": "8"}}})
}

// Jobs of a JobSet are one gang if their pods name one group.
func TestJobsOfOneGang(t *testing.T) {
	part := func(c *clustertest.Cluster, name, node string, age time.Duration) {
		g := gangOf(1, 8, func(g *clustertest.Gang) {
			g.Name, g.Kind, g.Age = name, "Job", age
			g.BatchJob = func(j *batchv1.Job) {
				yes := true
				j.OwnerReferences = []metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "set", UID: "set", Controller: &yes}}
			}
			g.Pod = func(_ int, p *corev1.Pod) { p.Labels["scheduling.x-k8s.io/pod-group"] = "set" }
			if node != "" {
				g.Nodes = []string{node}
			}
		})
		c.Add(g)
		delete(c.S.Custom, kindOf("scheduling.x-k8s.io", "PodGroup"))
	}
	group := func(c *clustertest.Cluster, n int64) {
		c.Object(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": map[string]any{"namespace": "team", "name": "set"}, "spec": map[string]any{"minMember": n}})
	}
	check(t, []testCase{
		{name: "all fit together", code: answer.Fits, exit: 3, first: "all 2 members", wantText: []string{"set has pods of several jobs, which start together: gang, gang-2"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			part(c, "gang", "", 20*time.Second)
			part(c, "gang-2", "", 20*time.Second)
			group(c, 2)
		}},
		{name: "one alone would fit", code: answer.NodesBusy, exit: 3, first: "2 members with 8 GPUs each", never: []answer.Code{answer.MinMemberTooHigh}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1")
			part(c, "gang", "", 10*time.Minute)
			part(c, "gang-2", "", 10*time.Minute)
			group(c, 2)
		}},
		{name: "all run", exit: 0, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			part(c, "gang", "n1", time.Hour)
			part(c, "gang-2", "n2", time.Hour)
			group(c, 2)
		}},
		{name: "the other Job may follow", code: answer.BelowQuorum, exit: 3, first: "1 pod exists, and the gang needs 2: pods of other Jobs may follow", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			part(c, "gang", "", 10*time.Second)
			group(c, 2)
		}},
		{name: "no other Job has followed", code: answer.MinMemberTooHigh, exit: 4, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			part(c, "gang", "", 10*time.Minute)
			group(c, 2)
		}},
	})
}

// Jobs of any kinds are one gang if their pods name one group.
func TestJobsThatShareAGroup(t *testing.T) {
	part := func(c *clustertest.Cluster, name, kind string, age time.Duration, changes ...func(*clustertest.Gang)) {
		g := gangOf(2, 8, append(changes, func(g *clustertest.Gang) {
			g.Name, g.Kind, g.Age = name, kind, age
			g.Pod = func(_ int, p *corev1.Pod) { p.Labels["scheduling.x-k8s.io/pod-group"] = "pair" }
			g.BatchJob = func(j *batchv1.Job) { j.Spec.Template.Labels["scheduling.x-k8s.io/pod-group"] = "pair" }
		})...)
		c.Add(g)
		delete(c.S.Custom, kindOf("scheduling.x-k8s.io", "PodGroup"))
		c.Object(map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": map[string]any{"namespace": "team", "name": "pair"}, "spec": map[string]any{"minMember": int64(4)}})
	}
	suspended := func(c *clustertest.Cluster) {
		yes := true
		for _, j := range c.S.Jobs {
			j.Spec.Suspend = &yes
		}
	}
	young, old := 20*time.Second, 10*time.Minute
	check(t, []testCase{
		{name: "of one kind: all fit together", code: answer.Fits, exit: 3, first: "all 4 members", wantText: []string{"pair has pods of several jobs, which start together: gang, learner"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			part(c, "gang", "PyTorchJob", young)
			part(c, "learner", "PyTorchJob", young)
		}},
		{name: "of two kinds: one alone would fit", code: answer.NodesBusy, exit: 3, first: "24 of 32 GPUs free.*4 members with 8 GPUs each, 32 in all", never: []answer.Code{answer.MinMemberTooHigh}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("a", 8, "n1")
			part(c, "gang", "PyTorchJob", old)
			part(c, "learner", "Job", old)
		}},
		{name: "the other one is suspended", code: answer.BelowQuorum, exit: 4, first: "2 pods exist, and the gang needs 4: Job learner, whose pods join it, has made 0 of 2", wantText: []string{"why learner has not made the others: learner is suspended", "gangctl -n team why-pending batchjob/learner"},
			never: []answer.Code{answer.MinMemberTooHigh}, build: func(c *clustertest.Cluster) {
				c.Nodes(4, 8)
				part(c, "gang", "PyTorchJob", old)
				part(c, "learner", "Job", old, none)
				suspended(c)
			}},
		{name: "the other one had the group before, and has ended", code: answer.Fits, exit: 3, first: "all 2 members", not: []string{"start together"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			part(c, "learner", "PyTorchJob", old, job(set([]any{clustertest.Condition("Succeeded", "True", "", "", time.Hour)}, "status", "conditions")))
			for _, p := range c.S.Pods {
				p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodSucceeded
			}
			part(c, "gang", "PyTorchJob", young)
			set(int64(2), "spec", "minMember")(c.S.Custom[kindOf("scheduling.x-k8s.io", "PodGroup")][0].Object)
		}},
		{name: "it is the one that is suspended", code: answer.JobSuspended, exit: 4, never: []answer.Code{answer.MinMemberTooHigh, answer.BelowQuorum}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			part(c, "learner", "PyTorchJob", old)
			part(c, "gang", "Job", old, none)
			suspended(c)
		}},
		{name: "the other one has ended", code: answer.MinMemberTooHigh, exit: 4, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			part(c, "gang", "PyTorchJob", old)
			part(c, "learner", "Job", old, none)
			for _, j := range c.S.Jobs {
				j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
			}
		}},
	})
}

func TestUnmodelled(t *testing.T) {
	young := func(g *clustertest.Gang) { g.Age = 20 * time.Second }
	check(t, []testCase{
		{name: "a scheduler of another name whose program reads the group", code: answer.Fits, exit: 3, not: []string{"does not read"}, build: func(c *clustertest.Cluster) {
			c.GangScheduler("").Deployment("vc", "vc", "volcanosh/vc-scheduler:v1.12", "--scheduler-name=batch")
			c.Lease("vc", time.Second)
			c.Event("TFJob", "team", "gang", "training-operator", "SetPodTemplateSchedulerName", "Another scheduler is specified", time.Minute)
			c.Queue("q", "Open", nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, young, scheduledBy("batch"), func(g *clustertest.Gang) { g.Volcano = "q" }))
		}},
		{name: "our scheduler reads the group of any dialect", code: answer.Fits, exit: 3, not: []string{"does not read"}, build: func(c *clustertest.Cluster) {
			c.GangScheduler("volcano")
			c.Queue("q", "Open", nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, young, func(g *clustertest.Gang) { g.Volcano = "q" }))
		}},
		{name: "a scheduler whose program does not read the group", code: answer.Fits, exit: 3, wantText: []string{"scheduler batch does not read PodGroup.scheduling.volcano.sh gang"}, build: func(c *clustertest.Cluster) {
			c.GangScheduler("volcano").Deployment("batch", "batch", "batch:v1", "--scheduler-name=batch")
			c.Lease("batch", time.Second)
			c.Queue("q", "Open", nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, young, scheduledBy("batch"), func(g *clustertest.Gang) { g.Volcano = "q" }))
		}},
		{name: "minimums of parts of a gang of Volcano", code: answer.Fits, exit: 3, wantText: []string{"the minimums of parts of the gang in spec.subGroupPolicy of PodGroup.scheduling.volcano.sh gang"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, young, func(g *clustertest.Gang) {
				g.Volcano, g.Group = "q", set([]any{map[string]any{"name": "slices", "matchLabelKeys": []any{"slice"}, "minSubGroups": int64(2)}}, "spec", "subGroupPolicy")
			}))
		}},
		{name: "network topology of parts of a gang of Volcano", code: answer.Fits, exit: 3, not: []string{"parts of the gang in spec.subGroupPolicy"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, young, func(g *clustertest.Gang) {
				g.Volcano, g.Group = "q", set([]any{map[string]any{"name": "slices", "matchLabelKeys": []any{"slice"}, "networkTopology": map[string]any{"mode": "soft"}}}, "spec", "subGroupPolicy")
			}))
		}},
		{name: "a soft one is a wish", code: answer.Fits, exit: 3, not: []string{"network topology"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, young, func(g *clustertest.Gang) {
				g.Volcano, g.Group = "q", set(map[string]any{"mode": "soft"}, "spec", "networkTopology")
			}))
		}},
		{name: "a quota of Koordinator", code: answer.Fits, exit: 3, wantText: []string{"limits of Koordinator's ElasticQuota team-q"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, young, speaks(c, gang.Koordinator, "koord-scheduler"), pods(func(_ int, p *corev1.Pod) { p.Labels["quota.scheduling.koordinator.sh/name"] = "team-q" })))
		}},
		{name: "a quota of scheduler-plugins that the scheduler speaks of", code: answer.QueueQuota, exit: 3, first: "ElasticQuota q does not let it start, reports the scheduler: .*more than Max", wantText: []string{"limits of ElasticQuota q"}, build: func(c *clustertest.Cluster) {
			elastic(c, "team", "q")
			c.Nodes(2, 8).Add(gangOf(2, 8))
			c.Event("Pod", "team", "gang-worker-0", clustertest.Scheduler, "FailedScheduling", "0/2 nodes are available: pod gang-worker-0 is rejected in PreFilter because ElasticQuota q is more than Max", 3*time.Second)
		}},
		{name: "a quota of another namespace, and a message about something else", code: answer.Fits, exit: 3, never: []answer.Code{answer.QueueQuota}, not: []string{"limits of"}, build: func(c *clustertest.Cluster) {
			elastic(c, "research", "q")
			c.Nodes(2, 8).Add(gangOf(2, 8, young))
			c.Event("Pod", "team", "gang-worker-0", clustertest.Scheduler, "FailedScheduling", "quota", 3*time.Second)
		}},
		{name: "a queue of YuniKorn, and no task groups", code: answer.Fits, exit: 3, wantText: []string{"limits of YuniKorn's queue root.a"}, build: func(c *clustertest.Cluster) {
			c.Schedules("yunikorn").GangScheduler("").Nodes(2, 8).Add(gangOf(1, 8, young, ungrouped, func(g *clustertest.Gang) { g.Scheduler = "yunikorn" }, pods(func(_ int, p *corev1.Pod) { p.Labels["queue"] = "root.a" })))
		}},
		{name: "queues of YuniKorn", code: answer.Fits, exit: 3, wantText: []string{"limits of YuniKorn's queue q"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, young, speaks(c, gang.YuniKorn, "yunikorn")))
		}},
		{name: "GPUs of KAI by their memory", code: answer.Fits, exit: 3, wantText: []string{"annotation gpu-memory: no node has label nvidia.com/gpu.memory"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 0, young, speaks(c, gang.KAI, "kai-scheduler"), pods(func(_ int, p *corev1.Pod) { p.Annotations["gpu-memory"] = "2000" })))
		}},
		{name: "parts of a gang of KAI", code: answer.Fits, exit: 3, wantText: []string{"spec.subGroups"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, young, speaks(c, gang.KAI, "kai-scheduler"), func(g *clustertest.Gang) {
				g.Group = set([]any{map[string]any{"name": "leaders", "minMember": int64(1)}}, "spec", "subGroups")
			}))
		}},
	})
}

// Each pod names a group and a scheduler by itself: one that names others does not count.
func TestMembership(t *testing.T) {
	of := func(first int, change func(*corev1.Pod)) func(*clustertest.Gang) {
		return func(g *clustertest.Gang) {
			g.Volcano, g.Scheduler = "q", "volcano"
			g.Pod = func(i int, p *corev1.Pod) {
				if i >= first {
					change(p)
				}
			}
		}
	}
	volcano := func(c *clustertest.Cluster) *clustertest.Cluster {
		c.Queue("q", "Open", nil)
		return c.Schedules("volcano").GangScheduler("volcano").Nodes(4, 8)
	}
	scheduler := func(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.SchedulerName = name } }
	group := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations["scheduling.k8s.io/group-name"] = name }
	}
	check(t, []testCase{
		{name: "one names another scheduler, which lives", code: answer.Fits, exit: 3, wantText: []string{`worker-3 names scheduler "default-scheduler": placed apart from the gang, one by one`}, build: func(c *clustertest.Cluster) {
			volcano(c).Schedules("default-scheduler").Add(gangOf(4, 8, young, of(3, scheduler("default-scheduler"))))
		}},
		{name: "the first names another scheduler, and so do more than do not", code: answer.Fits, exit: 3, wantText: []string{`worker-0, worker-1, worker-2 name scheduler "default-scheduler": placed apart`}, build: func(c *clustertest.Cluster) {
			volcano(c).Schedules("default-scheduler").Add(gangOf(4, 8, young, func(g *clustertest.Gang) {
				g.Volcano, g.Scheduler = "q", "default-scheduler"
				g.Pod = func(i int, p *corev1.Pod) {
					if i == 3 {
						p.Spec.SchedulerName = "volcano"
					}
				}
			}))
		}},
		{name: "one names a scheduler that is not there", code: answer.SchedulerNotFound, exit: 4, first: `schedulerName "volcanoo"`, wantText: []string{`worker-3 names scheduler "volcanoo"`, "did you mean volcano"}, never: []answer.Code{answer.BelowQuorum}, build: func(c *clustertest.Cluster) {
			volcano(c).Add(gangOf(4, 8, young, of(3, scheduler("volcanoo"))))
		}},
		{name: "some name another group", code: answer.BelowQuorum, exit: 4, first: `2 of 4 members count for .*, and it needs 4: worker-2, worker-3 name group "other"`, wantText: []string{"annotation scheduling.k8s.io/group-name: gang"}, build: func(c *clustertest.Cluster) {
			volcano(c).Add(gangOf(4, 8, young, of(2, group("other"))))
		}},
		{name: "the first names another group", code: answer.BelowQuorum, exit: 4, first: `3 of 4 members count for PodGroup.scheduling.volcano.sh gang, and it needs 4: worker-0 names group "other"`, build: func(c *clustertest.Cluster) {
			volcano(c).Add(gangOf(4, 8, young, of(0, func(p *corev1.Pod) {
				if strings.HasSuffix(p.Name, "-0") {
					group("other")(p)
				}
			})))
		}},
		{name: "one names none", code: answer.BelowQuorum, exit: 4, first: `3 of 4 members count for .*: worker-3 names no group`, build: func(c *clustertest.Cluster) {
			volcano(c).Add(gangOf(4, 8, young, of(3, func(p *corev1.Pod) { delete(p.Annotations, "scheduling.k8s.io/group-name") })))
		}},
		{name: "enough count", code: answer.Fits, exit: 3, wantText: []string{`3 of 4 members count for .*, and it needs 3: worker-3 names no group`}, build: func(c *clustertest.Cluster) {
			volcano(c).Add(gangOf(4, 8, young, func(g *clustertest.Gang) { g.Min = 3 }, of(3, func(p *corev1.Pod) { delete(p.Annotations, "scheduling.k8s.io/group-name") })))
		}},
		{name: "what another scheduler has placed counts", code: answer.Fits, exit: 3, not: []string{"members count for"}, build: func(c *clustertest.Cluster) {
			volcano(c).Schedules("default-scheduler").Add(gangOf(4, 8, young, func(g *clustertest.Gang) { g.Nodes = []string{"n1"} }, of(0, func(p *corev1.Pod) {
				if p.Spec.NodeName != "" {
					p.Spec.SchedulerName = "default-scheduler"
				}
			})))
		}},
	})
}

// Kube-scheduler refuses a PodGroup of Kubernetes whose members differ in priority or preemption policy, or from it.
func TestUnequalTerms(t *testing.T) {
	never, lower := corev1.PreemptNever, corev1.PreemptLowerPriority
	native := func(c *clustertest.Cluster, scheduler string, n int64, changes ...func(*clustertest.Gang)) {
		g := gangOf(2, 8, append([]func(*clustertest.Gang){speaks(c, gang.Native, scheduler), young}, changes...)...)
		g.Group = set(n, "spec", "priority")
		c.Nodes(2, 8).Add(g)
	}
	check(t, []testCase{
		{name: "the PodGroup has another priority", code: answer.JobInvalid, exit: 4, first: "^scheduler default-scheduler refuses PodGroup.scheduling.k8s.io gang, which must have one priority with all its members: there is 0 of worker-0, worker-1, 1000 of PodGroup.scheduling.k8s.io gang$",
			wantText: []string{"set one PriorityClass"}, build: func(c *clustertest.Cluster) { native(c, "default-scheduler", 1000) }},
		{name: "the PodGroup has a class that the pods lack", code: answer.JobInvalid, exit: 4, fix: "give the pods priorityClassName high, as PodGroup.scheduling.k8s.io gang has", build: func(c *clustertest.Cluster) {
			native(c, "default-scheduler", 1000)
			for _, list := range c.S.Custom {
				for _, u := range list {
					if u.GetKind() == "PodGroup" {
						set("high", "spec", "priorityClassName")(u.Object)
					}
				}
			}
		}},
		{name: "members may not all preempt", code: answer.JobInvalid, exit: 4, first: "must have one preemptionPolicy with all its members: there is Never of worker-1, PreemptLowerPriority of worker-0$", build: func(c *clustertest.Cluster) {
			native(c, "default-scheduler", 0, func(g *clustertest.Gang) {
				g.Pod = func(i int, p *corev1.Pod) {
					if p.Spec.PreemptionPolicy = &lower; i == 1 {
						p.Spec.PreemptionPolicy = &never
					}
				}
			})
		}},
		{name: "all have one", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) { native(c, "default-scheduler", 50, spec(priority(50))) }},
		{name: "1.36 takes any", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			native(c, "default-scheduler", 1000)
			for _, list := range c.S.Custom {
				for _, u := range list {
					if u.GetKind() == "PodGroup" {
						u.SetAPIVersion("scheduling.k8s.io/v1alpha2")
					}
				}
			}
		}},
	})
}

// What the controller reports of a member is why it makes no others.
func TestReportedOfMember(t *testing.T) {
	check(t, []testCase{
		{name: "a group that is not its own", code: answer.BelowQuorum, exit: 5, first: "has not made the others in 50m, and reports: PodGroup team/gang-0-x is not owned by pod gang-0", wantText: []string{"it has reported that .UnexpectedPodGroupOwner. 1 time, last 20s ago, of gang-0"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Kind, g.Missing, g.Age = "LeaderWorkerSet", 1, 50*time.Minute }))
			c.Event("Pod", "team", "gang-0", "leaderworkerset", "UnexpectedPodGroupOwner", "PodGroup team/gang-0-x is not owned by pod gang-0", 20*time.Second).Type = corev1.EventTypeWarning
		}},
	})
}
