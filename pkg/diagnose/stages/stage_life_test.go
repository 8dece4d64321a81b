package stages_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// replaced is a gang that ran for two hours on n1 and elsewhere; the second member was made again half an hour ago.
func replaced(g *clustertest.Gang) {
	g.Nodes, g.Age = []string{"n1"}, 2*time.Hour
	g.Pod = func(i int, p *corev1.Pod) {
		if i == 1 {
			p.CreationTimestamp = clustertest.Ago(30 * time.Minute)
		}
	}
}

// lost has three nodes, of which n2 went away 37 minutes ago.
func lost(c *clustertest.Cluster) *clustertest.Cluster {
	c.Nodes(3, 8)
	clustertest.NotReady(c.S.Nodes[1], 37*time.Minute)
	return c.Add(gangOf(2, 8, replaced))
}

// drained is a gang that has run for an hour on n1 and n2; the second member is being deleted since five minutes ago, and has ten left.
func drained(g *clustertest.Gang) {
	g.Nodes, g.Age = []string{"n1", "n2"}, time.Hour
	g.Pod = func(i int, p *corev1.Pod) {
		if i == 1 {
			at := metav1.NewTime(clustertest.Now.Add(10 * time.Minute))
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, ptr.To[int64](15*60)
		}
	}
}

func bothUp(g *clustertest.Gang) { g.Nodes, g.Age = []string{"n1", "n2"}, time.Hour }

// leaving has members preempted, whose pods are to be gone after some time, or before now.
func leaving(in time.Duration, members ...int) func(*clustertest.Gang) {
	return pods(func(i int, p *corev1.Pod) {
		if slices.Contains(members, i) {
			at := metav1.NewTime(clustertest.Now.Add(in))
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, ptr.To[int64](30)
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "PreemptionByScheduler"}}
		}
	})
}

func thief(name, node string, age time.Duration) clustertest.Gang {
	return clustertest.Gang{Namespace: "research", Name: name, Workers: 1, GPUs: 8, Nodes: []string{node}, Age: age}
}

func TestLost(t *testing.T) {
	check(t, []testCase{
		{name: "a node went away, and another job took the other", code: answer.SlotStolen, exit: 7, first: "1/2 run: worker-1 was lost on n2 37m ago, and research/basalt took the room; 8 GPUs idle", wantText: []string{"node n2 is not ready", "research/basalt took n3 20m|research/basalt took n3 19m"}, build: func(c *clustertest.Cluster) {
			lost(c).Add(thief("basalt", "n3", 20*time.Minute))
		}},
		{name: "who was there before is no thief", code: answer.MemberLost, exit: 7, first: "there is no room for it", never: []answer.Code{answer.SlotStolen}, build: func(c *clustertest.Cluster) {
			lost(c).Add(thief("basalt", "n3", 3*time.Hour))
		}},
		{name: "who uses no device is no thief", code: answer.MemberLost, exit: 7, never: []answer.Code{answer.SlotStolen}, build: func(c *clustertest.Cluster) {
			o := thief("basalt", "n1", 20*time.Minute)
			o.GPUs = 0
			lost(c).Add(thief("old", "n3", 3*time.Hour)).Add(o)
		}},
		{name: "who took a node that does not matter is no thief", code: answer.MemberLost, exit: 7, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8)
			label(c, "class", "h100", "h100", "a100")
			clustertest.NotReady(c.S.Nodes[1], 37*time.Minute)
			c.Add(gangOf(2, 8, replaced, spec(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": "h100"} }))).Add(thief("basalt", "n3", 20*time.Minute))
		}},
		{name: "there is room again", code: answer.Fits, exit: 3, first: "the other 1 of 2 members", build: func(c *clustertest.Cluster) {
			lost(c)
			c.Event("Pod", "team", "gang-worker-1", clustertest.Scheduler, "FailedScheduling", "0/3 nodes are available", 10*time.Second)
		}},
		{name: "the node was deleted, and an event remembers it", code: answer.MemberLost, exit: 7, first: "worker-1 was lost on n9", wantText: []string{"its node n9 is gone"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8, replaced))
			c.Node("n0", 0)
			c.S.Nodes[1].Labels["x"] = "y"
			e := c.Event("Pod", "team", "gang-worker-1", clustertest.Scheduler, "Scheduled", "Successfully assigned team/gang-worker-1 to n9", 119*time.Minute)
			e.Type = corev1.EventTypeNormal
			c.Node("n2", 8).Spec.Unschedulable = true
			c.Runs("b", 8, "n2")
		}},
		{name: "it was preempted", code: answer.SlotStolen, exit: 7, wantText: []string{"preempted: Preempted by pod research/k-worker-0 on node n2", "31m"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, replaced)).Add(thief("k", "n2", 30*time.Minute))
			c.Event("Pod", "team", "gang-worker-1", "default-scheduler", "Preempted", "Preempted by pod research/k-worker-0 on node n2", 31*time.Minute)
		}},
		{name: "the pod is on a node that is gone", code: answer.MemberLost, exit: 7, first: "worker-1 was lost on n2", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }))
		}},
		{name: "the pod is on a node that is gone, and there is room", code: answer.MemberLost, exit: 7, first: "worker-1 was lost on n2, and there is room again", wantText: []string{"its node n2 is gone, and kube-controller-manager removes its pod by itself"}, never: []answer.Code{answer.FitsNotPlaced}, not: []string{"its node is not ready"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }))
			c.Node("n3", 8)
		}},
		{name: "it was ended by a shutdown of its node, which is away", code: answer.MemberLost, exit: 7, wantText: []string{"Terminated: Pod was terminated in response to imminent node shutdown"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }, pods(func(i int, p *corev1.Pod) {
				if i == 1 {
					p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Terminated", "Pod was terminated in response to imminent node shutdown."
					p.Status.ContainerStatuses = nil
				}
			})))
			clustertest.NotReady(c.S.Nodes[1], 3*time.Minute)
		}},
		{name: "all were evicted, and none is made again", code: answer.MemberLost, exit: 7, first: "0/2 run: worker-0, worker-1 were lost on n1, n2", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }, pods(func(_ int, p *corev1.Pod) {
				p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: ephemeral-storage"
				p.Status.ContainerStatuses = nil
			})))
		}},
		{name: "all pods of a Job were evicted just now: it makes others", code: answer.BelowQuorum, exit: 3, first: "its controller makes others by itself, at most 6m", never: []answer.Code{answer.MemberLost}, build: evictedJob(5 * time.Second)},
		{name: "all pods of a Job were evicted long ago", code: answer.MemberLost, exit: 7, build: evictedJob(10 * time.Minute)},
		{name: "evicted, and not made again", code: answer.MemberLost, exit: 7, wantText: []string{"Evicted: The node was low on resource: ephemeral-storage"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }, pods(func(i int, p *corev1.Pod) {
				if i == 1 {
					p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: ephemeral-storage"
					p.Status.ContainerStatuses = nil
				}
			}))).Runs("b", 8, "n2")
		}},
		{name: "deleted, and no pod replaces it", code: answer.MemberLost, exit: 7, first: "1/2 run: worker-1 has no pod, and there is no room for it", wantText: []string{"no pod replaces it"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes, g.Missing, g.Age = []string{"n1"}, 1, 2*time.Hour })).Runs("b", 8, "n2")
		}},
		{name: "a head that holds no device idles for nobody", code: answer.TooBig, exit: 6, first: "does not tolerate taint dedicated=ml", wantText: []string{"(?m)^1 of 3 members have a node$"}, never: []answer.Code{answer.MemberLost}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Node("cpu1", 0)
			for _, n := range c.S.Nodes[:2] {
				n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "ml", Effect: corev1.TaintEffectNoSchedule}}
			}
			c.Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Kind, g.More = "RayCluster", []clustertest.Role{{Name: "Head", Replicas: 1, CPU: "1", Memory: "1Gi", Nodes: []string{"cpu1"}}}
			}))
		}},
		{name: "never made, as it is refused", code: answer.AdmissionDenied, exit: 4, first: "missing team label", wantText: []string{"1 of 2 members have a node and hold 8 GPUs for nothing"}, never: []answer.Code{answer.MemberLost}, not: []string{"lost"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes, g.Missing, g.Age = []string{"n1"}, 1, 2*time.Hour }))
			refuse(c, `admission webhook "policy.example.com" denied the request: missing team label`)
		}},
		{name: "never made, as a quota is used up", code: answer.NSQuotaTooSmall, exit: 6, never: []answer.Code{answer.MemberLost}, build: func(c *clustertest.Cluster) {
			quota(c, "gpus", clustertest.List("requests.nvidia.com/gpu", "8"), clustertest.List("requests.nvidia.com/gpu", "8"))
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes, g.Missing, g.Age = []string{"n1"}, 1, 2*time.Hour }))
		}},
		{name: "never made, as the operator may not", code: answer.OperatorRBAC, exit: 5, never: []answer.Code{answer.MemberLost}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes, g.Missing, g.Age = []string{"n1"}, 1, 2*time.Hour }))
			refuse(c, `pods is forbidden: User "system:serviceaccount:kubeflow:training-operator" cannot create resource "pods" in API group "" in the namespace "team"`)
		}},
		{name: "it ran, and the pod that replaces it is refused", code: answer.MemberLost, exit: 7, first: "worker-1 was lost on n2 31m ago, and no pod that replaces it is accepted", also: []answer.Code{answer.AdmissionDenied}, wantText: []string{"preempted: .*; its creation is refused"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes, g.Missing, g.Age = []string{"n1"}, 1, 2*time.Hour }))
			c.Event("Pod", "team", "gang-worker-1", "default-scheduler", "Scheduled", "Successfully assigned team/gang-worker-1 to n2", 119*time.Minute)
			c.Event("Pod", "team", "gang-worker-1", "default-scheduler", "Preempted", "Preempted by pod research/k-worker-0 on node n2", 31*time.Minute)
			refuse(c, `admission webhook "policy.example.com" denied the request: missing team label`)
		}},
		{name: "not made yet, of a gang of which the first has just started", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.MemberLost}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, young, func(g *clustertest.Gang) { g.Nodes, g.Missing = []string{"n1"}, 1 }))
		}},
		{name: "another role's member on the same index hides nothing", code: answer.MemberLost, exit: 7, first: "worker-0 was lost on n2 37m ago", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			clustertest.NotReady(c.S.Nodes[1], 37*time.Minute)
			c.Add(gangOf(1, 8, func(g *clustertest.Gang) {
				g.Age = 2 * time.Hour
				g.More = []clustertest.Role{{Name: "PS", Replicas: 1, Nodes: []string{"n1"}, GPUs: 4}}
				g.Pod = func(_ int, p *corev1.Pod) { p.CreationTimestamp = clustertest.Ago(30 * time.Minute) }
			}))
		}},
		{name: "evicted again and again", code: answer.NodesBusy, exit: 3, wantText: []string{`it was evicted 9 times in 24m, last 60s ago \(Pod is evicted, because of reclaim\): it may be again`}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("k", 8, "n1").Add(gangOf(1, 8, pods(func(_ int, p *corev1.Pod) { p.CreationTimestamp = clustertest.Ago(time.Minute) })))
			e := c.Event("Pod", "team", "gang-worker-0", "volcano", "Evict", "Pod is evicted, because of reclaim", time.Minute)
			e.Count, e.FirstTimestamp = 9, clustertest.Ago(25*time.Minute)
		}},
		{name: "an earlier job of its name was evicted again and again", code: answer.NodesBusy, exit: 3, not: []string{"it was evicted"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("k", 8, "n1").Add(gangOf(1, 8, func(g *clustertest.Gang) { g.Age = 5 * time.Minute }))
			c.Event("Pod", "team", "gang-worker-0", "volcano", "Evict", "Pod is evicted, because of reclaim", 6*time.Minute).Count = 9
		}},
		{name: "its group was evicted, and waits again", code: answer.NodesBusy, exit: 3, wantText: []string{"it ran before: it was evicted 6m ago: because of preempt"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("k", 8, "n1").Add(gangOf(1, 8))
			c.Event("PodGroup", "team", "gang", "volcano", "Evict", "because of preempt", 6*time.Minute)
		}},
		{name: "evicted by the descheduler again and again, and starts", code: answer.ContainersStarting, exit: 3, wantText: []string{`it was evicted 3 times in 10m, last 5m ago \(pod eviction from n1 node`}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(1, 8, ungrouped, func(g *clustertest.Gang) {
				g.Kind, g.Age = "Job", time.Hour
				g.BatchJob = func(j *batchv1.Job) { j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion) }
			}, pods(func(i int, p *corev1.Pod) { p.Annotations[batchv1.JobCompletionIndexAnnotation] = fmt.Sprint(i) })))
			p := c.S.Pods[len(c.S.Pods)-1]
			for i := range 3 {
				before, at := p.DeepCopy(), clustertest.Ago(time.Duration(15-5*i)*time.Minute)
				before.Name, before.UID, before.Spec.NodeName, before.CreationTimestamp = fmt.Sprint("gang-before-", i), types.UID(fmt.Sprint("before-", i)), "n1", clustertest.Ago(time.Duration(20-5*i)*time.Minute)
				before.Status = corev1.PodStatus{Phase: corev1.PodFailed, Conditions: []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", LastTransitionTime: at}}}
				c.S.Pods = append(c.S.Pods, before)
				c.Event("Pod", "team", before.Name, "sigs.k8s.io/descheduler", "LowNodeUtilization", "pod eviction from n1 node by sigs.k8s.io/descheduler", time.Duration(15-5*i)*time.Minute)
			}
			started := clustertest.Ago(10 * time.Second)
			p.CreationTimestamp, p.Spec.NodeName, p.Status.StartTime = started, "n1", &started
		}},
		{name: "all of it was preempted, and waits again", code: answer.NodesBusy, exit: 3, wantText: []string{"it ran before: worker-0, worker-1 were lost, 5m ago: preempted: Preempted by"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("k", 8, "n1", "n2").Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Age = 2 * time.Hour }, pods(func(_ int, p *corev1.Pod) { p.CreationTimestamp = clustertest.Ago(4 * time.Minute) })))
			for _, name := range []string{"gang-worker-0", "gang-worker-1"} {
				c.Event("Pod", "team", name, "default-scheduler", "Preempted", "Preempted by pod research/k-worker-0", 5*time.Minute)
			}
		}},
		{name: "who came took another resource than the device", code: answer.SlotStolen, exit: 7, first: "worker-1 was lost 30m ago, and research/basalt took the room", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, replaced, func(g *clustertest.Gang) { g.CPU = "64" }))
			c.Add(clustertest.Gang{Namespace: "research", Name: "basalt", Workers: 1, CPU: "72", Nodes: []string{"n2"}, Age: 20 * time.Minute})
		}},
		{name: "two were lost at two times, and one room is taken", code: answer.SlotStolen, exit: 7, first: "1/3 run: worker-1 was lost on n2 37m ago, worker-2 10m ago, and research/basalt took the room", not: []string{"research/idle took"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8)
			clustertest.NotReady(c.S.Nodes[1], 37*time.Minute)
			c.Add(gangOf(3, 8, func(g *clustertest.Gang) { g.Nodes, g.Age = []string{"n1", "n2"}, 2*time.Hour }, pods(func(i int, p *corev1.Pod) {
				if i == 2 {
					p.CreationTimestamp = clustertest.Ago(10 * time.Minute)
				}
			}))).Add(thief("basalt", "n3", 5*time.Minute))
			c.Add(clustertest.Gang{Namespace: "research", Name: "idle", Workers: 1, CPU: "1", Nodes: []string{"n3"}, Age: 5 * time.Minute})
		}},
		{name: "the pod before has failed, and has another name", code: answer.MemberLost, exit: 7, first: "worker-1 was lost on n2 3m10s ago", wantText: []string{"worker-1: Evicted: The node was low on resource: memory"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("b", 8, "n2").Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Kind, g.Nodes, g.Age = "Job", []string{"n1"}, 2*time.Hour
				g.Pod = func(i int, p *corev1.Pod) {
					p.Labels[batchv1.JobCompletionIndexAnnotation] = []string{"0", "1"}[i]
					if i == 1 {
						p.CreationTimestamp = clustertest.Ago(3 * time.Minute)
					}
				}
			}))
			before := c.S.Pods[len(c.S.Pods)-1].DeepCopy()
			before.Name, before.UID, before.Spec.NodeName, before.CreationTimestamp = "gang-before", "before", "n2", clustertest.Ago(2*time.Hour)
			before.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory.",
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: clustertest.Ago(190 * time.Second)}}}
			c.S.Pods = append(c.S.Pods, before)
		}},
		{name: "what took the room is leaving", code: answer.VictimsTerminating, exit: 3, first: "research/basalt is being deleted, and then it fits", wantText: []string{"it ran before: worker-1 was lost 30m ago"}, never: []answer.Code{answer.MemberLost, answer.SlotStolen}, build: func(c *clustertest.Cluster) {
			by := thief("basalt", "n2", 20*time.Minute)
			by.Pod = func(_ int, p *corev1.Pod) {
				at := metav1.NewTime(clustertest.Now.Add(22 * time.Second))
				p.DeletionTimestamp = &at
			}
			c.Nodes(2, 8).Add(gangOf(2, 8, replaced)).Add(by)
		}},
		{name: "one member is done, and another is lost", code: answer.MemberLost, exit: 7, first: "^1/3 run and 1 is done: worker-2 was lost", build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("b", 8, "n2", "n3").Add(gangOf(3, 8, func(g *clustertest.Gang) { g.Nodes, g.Age = []string{"n1", "n2"}, 2*time.Hour }, pods(func(i int, p *corev1.Pod) {
				switch i {
				case 1:
					p.Status.Phase = corev1.PodSucceeded
				case 2:
					p.CreationTimestamp = clustertest.Ago(30 * time.Minute)
				}
			})))
		}},
		{name: "an elastic gang that lost one runs", exit: 0, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			clustertest.NotReady(c.S.Nodes[1], 37*time.Minute)
			c.Add(gangOf(2, 8, replaced, func(g *clustertest.Gang) { g.Min = 1 }))
		}},
	})
}

func TestLife(t *testing.T) {
	half := func(node string) func(*clustertest.Gang) {
		return func(g *clustertest.Gang) { g.Nodes = []string{node} }
	}
	check(t, []testCase{
		{name: "deadlock", code: answer.MutualDeadlock, exit: 7, first: "gang and research/other wait for each other: they hold 1/2 and 1/2 members", wantText: []string{"8 GPUs idle in gang, 8 GPUs in research/other"}, fix: "suspend research/other", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(clustertest.Gang{Namespace: "research", Name: "other", Workers: 2, GPUs: 8, Nodes: []string{"n2"}}).Add(gangOf(2, 8, half("n1")))
		}},
		{name: "a third one of a deadlock does not end, either", code: answer.MutualDeadlock, exit: 7, wantText: []string{"research/third holds 8 GPUs on n3, idle: 1/2 of its members have a node, and the others find none"}, also: []answer.Code{answer.NodesBusy}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8)
			for i, name := range []string{"other", "third"} {
				c.Add(clustertest.Gang{Namespace: "research", Name: name, Workers: 2, GPUs: 8, Nodes: []string{[]string{"n2", "n3"}[i]}})
			}
			c.Add(gangOf(2, 8, half("n1")))
		}},
		{name: "a job that ends makes room for one of them, which ends then", code: answer.MemberLost, exit: 7, also: []answer.Code{answer.NodesBusy}, never: []answer.Code{answer.MutualDeadlock}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("whole", 8, "n3").Add(clustertest.Gang{Namespace: "research", Name: "other", Workers: 2, GPUs: 8, Nodes: []string{"n2"}}).Add(gangOf(2, 8, half("n1")))
		}},
		{name: "a Job states a gang, and there is no PodGroup of it", code: answer.GangBypassed, exit: 7, first: "1/2 members were placed one by one by gang, as there is no PodGroup of the gang of 2 that spec.scheduling of the Job states", wantText: []string{"feature gate WorkloadWithJob"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n2").Add(gangOf(2, 8, half("n1"), ungrouped, func(g *clustertest.Gang) {
				g.Kind = "Job"
				g.BatchJob = func(j *batchv1.Job) {
					j.Spec.Scheduling = &batchv1.JobSchedulingConfiguration{SchedulingPolicy: &schedulingv1alpha3.WorkloadPodGroupSchedulingPolicy{Gang: &schedulingv1alpha3.WorkloadPodGroupGangSchedulingPolicy{}}}
				}
			}))
		}},
		{name: "the other one is complete", code: answer.MemberLost, exit: 7, never: []answer.Code{answer.MutualDeadlock}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("other", 8, "n2").Add(gangOf(2, 8, half("n1")))
		}},
		{name: "the other one waits for something else", code: answer.MemberLost, exit: 7, never: []answer.Code{answer.MutualDeadlock}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(clustertest.Gang{Namespace: "research", Name: "other", Workers: 5, GPUs: 8, Nodes: []string{"n2"}}).Add(gangOf(2, 8, half("n1")))
		}},
		{name: "without the other one there is still no room", code: answer.MemberLost, exit: 7, never: []answer.Code{answer.MutualDeadlock}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Serves("web", 8, "n3").Add(clustertest.Gang{Namespace: "research", Name: "other", Workers: 2, GPUs: 8, Nodes: []string{"n2"}}).Add(gangOf(3, 8, half("n1")))
		}},
		{name: "placed one by one", code: answer.GangBypassed, exit: 7, first: "1/2 members were placed one by one by default-scheduler", wantText: []string{"8 GPUs while worker-1 waits", "set it to gang"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n2").Add(gangOf(2, 8, half("n1"), scheduledBy("default-scheduler")))
		}},
		{name: "placed one by one, as the operator makes no group by the policy of the job", code: answer.GangBypassed, exit: 7, first: "1/2 members were placed one by one by gang, as the operator made no PodGroup: it runs without --gang-scheduler-name", wantText: []string{"its schedulingPolicy has no effect"},
			build: func(c *clustertest.Cluster) {
				c.GangScheduler("").Nodes(2, 8).Runs("a", 8, "n2").Add(gangOf(2, 8, half("n1"), ungrouped, job(set(int64(2), "spec", "runPolicy", "schedulingPolicy", "minAvailable"))))
			}},
		{name: "one is too big for any node", code: answer.MemberLost, exit: 7, first: "1/2 members have a node and worker-1 finds none, as each worker requests 16 GPUs", also: []answer.Code{answer.TooBig}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, half("n1"), ungrouped, pods(func(i int, p *corev1.Pod) {
				if i == 1 {
					p.Spec.Containers[0].Resources.Requests = clustertest.List("nvidia.com/gpu", "16")
					p.Spec.Containers[0].Resources.Limits = p.Spec.Containers[0].Resources.Requests
				}
			})))
		}},
		{name: "members name two schedulers", code: answer.MemberLost, exit: 7, wantText: []string{"those that have a node were placed by default-scheduler, and the others wait for gang"}, build: func(c *clustertest.Cluster) {
			c.GangScheduler("").Nodes(2, 8).Add(gangOf(2, 8, half("n1"), func(g *clustertest.Gang) { g.Age = time.Hour }, pods(func(i int, p *corev1.Pod) {
				if i == 0 {
					p.Spec.SchedulerName = "default-scheduler"
				}
			})))
		}},
		{name: "placed one by one in spite of Volcano", code: answer.GangBypassed, exit: 7, wantText: []string{"set it to gang"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.GangScheduler("").Nodes(2, 8).Runs("a", 8, "n2").Add(gangOf(2, 8, half("n1"), scheduledBy("default-scheduler"), func(g *clustertest.Gang) { g.Volcano = "q" }))
		}},
		{name: "the default scheduler may well read this dialect", code: answer.MemberLost, exit: 7, never: []answer.Code{answer.GangBypassed}, build: func(c *clustertest.Cluster) {
			c.GangScheduler("").Nodes(2, 8).Runs("a", 8, "n2").Add(gangOf(2, 8, half("n1"), scheduledBy("default-scheduler")))
		}},
		{name: "placed one by one in spite of their labels", code: answer.GangBypassed, exit: 7, wantText: []string{"set it to gang"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n2").Add(gangOf(2, 8, half("n1"), scheduledBy("default-scheduler"), func(g *clustertest.Gang) { g.Dialect = "labels" }))
		}},
		{name: "no member is placed yet, but the scheduler is the wrong one", code: answer.NodesBusy, exit: 3, wantText: []string{"default-scheduler does not read PodGroup.scheduling.x-k8s.io gang: it places members one by one"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8, scheduledBy("default-scheduler")))
		}},
		{name: "half of it has a node, and there is unused room for the rest", code: answer.MemberLost, exit: 7, first: "the others have room, but are not placed", also: []answer.Code{answer.FitsNotPlaced}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, half("n1"), func(g *clustertest.Gang) { g.Age = time.Hour }))
		}},
		{name: "a member is being deleted, and there is room for its successor", code: answer.VictimsTerminating, exit: 3, first: "^worker-1 is being deleted, until 14:10 at the latest, and its successor is made after that: there is room for the other 1 of 2 members on n2", never: []answer.Code{answer.FitsNotPlaced, answer.MemberLost}, alone: true, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(2, 8, drained))
		}},
		{name: "a pod of a Job is being deleted, which is replaced when it has ended", code: answer.VictimsTerminating, exit: 3, first: "until 14:10 at the latest", never: []answer.Code{answer.FitsNotPlaced, answer.MemberLost}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(2, 8, drained, func(g *clustertest.Gang) {
				g.Kind = "Job"
				g.BatchJob = func(j *batchv1.Job) { j.Spec.PodReplacementPolicy = ptr.To(batchv1.Failed) }
			}))
		}},
		{name: "a pod of a Job is being deleted, which is replaced at once", code: answer.Fits, exit: 3, first: "the other 1 of 2 members", not: []string{"successor"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(2, 8, drained, func(g *clustertest.Gang) { g.Kind = "Job" }))
		}},
		{name: "the room of a member that is being deleted is its successor's", code: answer.VictimsTerminating, exit: 3, first: "there is room for the other 1 of 2 members on n2", alone: true, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, drained))
		}},
		{name: "a member is being deleted, and its successor may not take its node", code: answer.MemberLost, exit: 7, first: "there is no room", wantText: []string{"it ends at 14:10 at the latest"}, also: []answer.Code{answer.NodeNotReady}, never: []answer.Code{answer.NodesBusy}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			c.S.Nodes[1].Spec.Unschedulable = true
			c.Add(gangOf(2, 8, drained))
		}},
		{name: "a member on a node that is away does not take its own room when that is repaired", code: answer.MemberLost, exit: 7, first: "worker-1 was lost on n2", also: []answer.Code{answer.NodeNotReady}, never: []answer.Code{answer.NodesBusy}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			clustertest.NotReady(c.S.Nodes[1], 2*time.Minute)
			c.Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes, g.Age = []string{"n1", "n2"}, time.Hour }))
		}},
		{name: "a member on a node that has just gone away", code: answer.MemberLost, exit: 7, wantText: []string{"the pod of worker-1 is deleted at about 14:03, as it tolerates taint node.kubernetes.io/unreachable for 5m, and is gone only when n2 reports again", "kubectl describe node n2"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8)
			clustertest.NotReady(c.S.Nodes[1], 2*time.Minute)
			c.S.Nodes[1].Spec.Taints = append(c.S.Nodes[1].Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})
			five := int64(300)
			c.Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes, g.Age = []string{"n1", "n2"}, time.Hour }, spec(func(p *corev1.PodSpec) {
				p.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &five}}
			})))
		}},
		{name: "a member that is stuck in its deletion", code: answer.MemberLost, exit: 7, first: "there is room again", wantText: []string{"worker-1 should have gone 30m ago"}, alone: true, fix: "clear gang-worker-1", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, drained, leaving(-30*time.Minute, 1)))
		}},
		{name: "a member that has failed and is stuck in its deletion", code: answer.MemberLost, exit: 7, first: "there is room again", wantText: []string{"worker-1 should have gone 30m ago: it is held by finalizer example.com/hold"}, alone: true, fix: "clear gang-worker-1",
			build: func(c *clustertest.Cluster) { c.Nodes(2, 8).Add(endedBadly(-30*time.Minute, "example.com/hold")) }},
		{name: "a member that has failed is being deleted", code: answer.VictimsTerminating, exit: 3, first: "^worker-1 is being deleted", alone: true,
			build: func(c *clustertest.Cluster) { c.Nodes(2, 8).Add(endedBadly(time.Minute)) }},
		{name: "a pod of a Job waits for its kubelet, and the Job for that", code: answer.MemberLost, exit: 7, wantText: []string{"worker-1 should have gone 30m ago: only the kubelet of its node", "node n2 is not ready for 40m: bring it back", "taint nodes n2 .*out-of-service"},
			fix: "bring back node n2", not: []string{"job-tracking", "clear"}, build: func(c *clustertest.Cluster) { heldOnAway(c, batchv1.JobTrackingFinalizer) }},
		{name: "a pod waits for its kubelet and for a finalizer", code: answer.MemberLost, exit: 7, wantText: []string{"the kubelet of its node has to confirm that it has ended, and it is held by finalizer example.com/hold"},
			fix: "clear gang-worker-1 and bring back node n2", build: func(c *clustertest.Cluster) { heldOnAway(c, "example.com/hold", batchv1.JobTrackingFinalizer) }},
		{name: "a pod waits for what it owns", code: answer.MemberLost, exit: 7, wantText: []string{"worker-1 should have gone 30m ago: the garbage collector of Kubernetes deletes what it owns first"}, fix: "have kube-controller-manager end the deletion of gang-worker-1", not: []string{"clear"},
			build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(gangOf(2, 8, bothUp, leaving(-30*time.Minute, 1), heldBy(metav1.FinalizerDeleteDependents)))
			}},
		{name: "the gang itself goes", code: answer.VictimsTerminating, exit: 3, first: "^worker-0, worker-1 are being deleted", wantText: []string{"worker-0: PreemptionByScheduler; it ends at 14:01"}, alone: true, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, bothUp, leaving(time.Minute, 0, 1)))
		}},
		{name: "the gang itself goes, and others get the room", code: answer.QueueOrder, exit: 3, first: "n1 is kept for research/k", wantText: []string{"it ran before: worker-0, worker-1 were lost, .*: PreemptionByScheduler"}, never: []answer.Code{answer.MemberLost, answer.NodesBusy}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, bothUp, leaving(time.Minute, 0, 1)))
			c.Add(clustertest.Gang{Namespace: "research", Name: "k", Workers: 1, GPUs: 8, Pod: func(_ int, p *corev1.Pod) {
				p.Status.NominatedNodeName, p.Spec.Priority = "n1", ptr.To[int32](100)
			}})
		}},
		{name: "suspended, and its pods go", code: answer.JobSuspended, exit: 4, alone: true, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, bothUp, leaving(time.Minute, 0, 1), job(set(true, "spec", "runPolicy", "suspend"))))
		}},
		{name: "suspended, and one of its pods does not go", code: answer.JobSuspended, exit: 4, also: []answer.Code{answer.StuckTerminating}, wantText: []string{"fix: clear gang-worker-1"}, never: []answer.Code{answer.MemberLost}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, bothUp, leaving(-time.Hour, 1), job(set(true, "spec", "runPolicy", "suspend"))))
		}},
		{name: "preempted by Kueue, and its pods go", code: answer.KueueQuota, exit: 3, never: []answer.Code{answer.MemberLost, answer.NodesBusy}, build: func(c *clustertest.Cluster) {
			pool(c, "16")
			uses(c, "other", "cq", "8")
			c.Add(gangOf(2, 8, bothUp, leaving(time.Minute, 0, 1), ungrouped, job(func(j map[string]any) {
				set(true, "spec", "runPolicy", "suspend")(j)
				set("lq", "metadata", "labels", "kueue.x-k8s.io/queue-name")(j)
			})))
			c.Workload("gang", "lq", 0)
		}},
	})
}

// endedBadly is a gang of two members of which the second was told to end, and is to be gone after some time, or before now.
func endedBadly(in time.Duration, finalizers ...string) clustertest.Gang {
	return gangOf(2, 8, bothUp, leaving(in, 1), heldBy(finalizers...), then(func(i int, p *corev1.Pod) {
		if i == 1 {
			p.Status.Phase = corev1.PodFailed
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "tensorflow", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 143, FinishedAt: clustertest.Ago(30 * time.Minute)}}}}
		}
	}))
}

// heldOnAway adds a gang of which the second member should have gone from n2, which has been away for longer, and finalizers hold it.
func heldOnAway(c *clustertest.Cluster, finalizers ...string) {
	c.Nodes(3, 8)
	clustertest.NotReady(c.S.Nodes[1], 40*time.Minute)
	c.Add(gangOf(2, 8, bothUp, leaving(-30*time.Minute, 1), heldBy(finalizers...)))
}

// heldBy puts finalizers on the second member.
func heldBy(finalizers ...string) func(*clustertest.Gang) {
	return then(func(i int, p *corev1.Pod) {
		if i == 1 {
			p.Finalizers = finalizers
		}
	})
}

// then changes each pod further.
func then(change func(i int, p *corev1.Pod)) func(*clustertest.Gang) {
	return func(g *clustertest.Gang) {
		before := g.Pod
		g.Pod = func(i int, p *corev1.Pod) {
			before(i, p)
			change(i, p)
		}
	}
}

// evictedJob is a Job both pods of which were evicted some time ago.
func evictedJob(ago time.Duration) func(*clustertest.Cluster) {
	return func(c *clustertest.Cluster) {
		c.Nodes(2, 8).Add(gangOf(2, 8, ungrouped, func(g *clustertest.Gang) { g.Kind, g.Nodes, g.Age = "Job", []string{"n1", "n2"}, time.Hour }, pods(func(_ int, p *corev1.Pod) {
			p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "TerminationByKubelet", LastTransitionTime: clustertest.Ago(ago)}}
		})))
	}
}
