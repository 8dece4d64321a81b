package stages_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

// terminating lets the pods of a job go, now or, with a negative time, long ago.
func terminating(left time.Duration, finalizers ...string) func(int, *corev1.Pod) {
	return func(_ int, p *corev1.Pod) {
		at := metav1.NewTime(clustertest.Now.Add(left))
		p.DeletionTimestamp, p.Finalizers = &at, finalizers
	}
}

// reported has the scheduler report why pods wait.
func reported(message string) func(*clustertest.Gang) {
	return pods(func(_ int, p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message}}
	})
}

func other(name string, gpus int64, nodes ...string) clustertest.Gang {
	return clustertest.Gang{Namespace: "research", Name: name, Workers: len(nodes), GPUs: gpus, Nodes: nodes, Age: 2 * time.Hour}
}

func priority(n int32) func(*corev1.PodSpec) { return func(p *corev1.PodSpec) { p.Priority = &n } }

// grouped is a gang whose PodGroup, one of Kubernetes, has a priority.
func grouped(g clustertest.Gang, n int64) clustertest.Gang {
	g.Dialect, g.Group = gang.Native, set(n, "spec", "priority")
	return g
}

// mpi is an MPIJob of an API version on n1 and n2, with a run policy. Its workers do not end by themselves.
func mpi(version string, policy map[string]any) clustertest.Gang {
	g := other("a", 8, "n1", "n2")
	g.Kind, g.More = "MPIJob", []clustertest.Role{{Name: "Launcher", Replicas: 1, Nodes: []string{"n1"}}}
	g.Job = func(job map[string]any) {
		set("kubeflow.org/"+version, "apiVersion")(job)
		set(policy, "spec", "runPolicy")(job)
	}
	return g
}

// withServer is a TFJob of a worker with GPUs and a parameter server with most cpu of its node.
func withServer(worker, server string) clustertest.Gang {
	g := other("a", 8, worker)
	g.More = []clustertest.Role{{Name: "PS", Replicas: 1, CPU: "80", Nodes: []string{server}}}
	return g
}

func TestBusy(t *testing.T) {
	check(t, []testCase{
		{name: "only who has what it needs may be preempted", code: answer.NodesBusy, exit: 3, wantText: []string{"its scheduler may preempt TFJob research/a .priority 0 < 50., and has not yet"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Runs("cpus", 0, "n2").Node("n3", 8).Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "infra", Effect: corev1.TaintEffectNoSchedule}}
			c.Runs("infra", 8, "n3")
			c.Add(gangOf(2, 8, spec(priority(50))))
		}},
		{name: "who has what it needs is not preempted in vain", code: answer.NodesBusy, exit: 3, wantText: []string{"preempting TFJob research/b .priority -10 < 0. would not make room for all"}, build: func(c *clustertest.Cluster) {
			b := other("b", 8, "n2")
			b.Spec = priority(-10)
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(b).Add(gangOf(2, 8))
		}},
		{name: "a service of a lower priority may be preempted", code: answer.NodesBusy, exit: 5, wantText: []string{"its scheduler may preempt Deployment serving/web .priority -10 < 0., and has not yet"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Serves("web", 8, "n1").Add(gangOf(1, 8))
			priority(-10)(&c.S.Pods[0].Spec)
		}},
		{name: "a gang whose PodGroup has a lower priority", code: answer.NodesBusy, exit: 3, wantText: []string{"its scheduler may preempt TFJob research/a .priority 5 < 10., and has not yet"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(grouped(other("a", 8, "n1"), 5)).Add(grouped(gangOf(1, 8), 10))
		}},
		{name: "a gang whose PodGroup has a higher priority than its pods", code: answer.NodesBusy, exit: 3, not: []string{"preempt"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(grouped(other("a", 8, "n1"), 50)).Add(grouped(gangOf(1, 8), 10))
		}},
		{name: "all of it", code: answer.NodesBusy, exit: 3, first: "0 of 16 GPUs free on the 2 nodes that gang may use, and it needs 2 workers with 8 GPUs each", wantText: []string{"TFJob research/a holds 8 GPUs on n1", "TFJob research/b holds 8 GPUs on n2"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Runs("b", 8, "n2").Add(gangOf(2, 8))
		}},
		{name: "some of it", code: answer.NodesBusy, exit: 3, first: "8 of 16 GPUs", build: func(c *clustertest.Cluster) { c.Nodes(2, 8).Runs("a", 8, "n1").Add(gangOf(2, 8)) }},
		{name: "free on nodes of another kind", code: answer.NodesBusy, exit: 3, first: "0 of 8 GPUs free on the 1 node", build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 8, "n1").Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": "h100"} })))
			label(c, "class", "h100", "a100", "a100")
		}},
		{name: "free behind a taint", code: answer.NodesBusy, exit: 3, first: "0 of 8 GPUs", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(gangOf(1, 8))
			c.S.Nodes[1].Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "infra", Effect: corev1.TaintEffectNoSchedule}}
		}},
		{name: "free, and kept by the scheduler for another", code: answer.ReservedByOthers, exit: 3, first: "its scheduler keeps that for others: room on n1 is reserved for gang research/a", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(1, 8, young, reported("0/1 nodes are available: 0 of the 1 members that its gang needs fit: room on n1 is reserved for gang research/a, which has waited since 12:00:00 and comes first by response ratio; it needs 1 member with 8 GPUs.")))
		}},
		{name: "kept by a scheduler that is down", code: answer.SchedulerDown, exit: 5, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(1, 8, young, reported("0/1 nodes are available: 0 of the 1 members that its gang needs fit: room on n1 is reserved for gang research/a; it needs 1 member with 8 GPUs.")))
			for _, l := range c.S.Leases {
				l.Spec.RenewTime = &metav1.MicroTime{Time: clustertest.Now.Add(-time.Hour)}
			}
		}},
		{name: "free, and not kept", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(1, 8, young, reported("0/1 nodes are available: 0 of the 1 members that its gang needs fit: it needs room on n1.")))
		}},
		{name: "a taint that is only a wish", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(1, 8, young))
			c.S.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "spot", Effect: corev1.TaintEffectPreferNoSchedule}}
		}},
		{name: "a taint that is tolerated", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(1, 8, young, spec(func(p *corev1.PodSpec) {
				p.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "team", Effect: corev1.TaintEffectNoSchedule}}
			})))
			c.S.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "team", Effect: corev1.TaintEffectNoSchedule}}
		}},
		{name: "a toleration with a slip in the value", code: answer.NodesBusy, exit: 3, wantText: []string{"toleration dedicated=taem does not match taint dedicated=team:NoSchedule of n2: was that meant"}, fix: "write toleration dedicated=team for dedicated=taem", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) { p.Tolerations = []corev1.Toleration{{Key: "dedicated", Value: "taem"}} })))
			c.S.Nodes[1].Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "team", Effect: corev1.TaintEffectNoSchedule}}
		}},
		{name: "a toleration that compares values", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 4)
			c.S.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "sla", Value: "990", Effect: corev1.TaintEffectNoSchedule}}
			c.Add(gangOf(1, 4, young, spec(func(p *corev1.PodSpec) {
				p.Tolerations = []corev1.Toleration{{Key: "sla", Operator: corev1.TolerationOpGt, Value: "950", Effect: corev1.TaintEffectNoSchedule}}
			})))
		}},
		{name: "a toleration that compares values, and does not match", code: answer.TooBig, exit: 6, not: []string{"was that meant"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 4)
			c.S.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "sla", Value: "900", Effect: corev1.TaintEffectNoSchedule}}
			c.Add(gangOf(1, 4, spec(func(p *corev1.PodSpec) {
				p.Tolerations = []corev1.Toleration{{Key: "sla", Operator: corev1.TolerationOpGt, Value: "950", Effect: corev1.TaintEffectNoSchedule}}
			})))
		}},
		{name: "a toleration of other nodes is not meant", code: answer.NodesBusy, exit: 3, not: []string{"was that meant", "write toleration"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) { p.Tolerations = []corev1.Toleration{{Key: "dedicated", Value: "team"}} })))
			c.S.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "team", Effect: corev1.TaintEffectNoSchedule}}
			c.S.Nodes[1].Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "infra", Effect: corev1.TaintEffectNoSchedule}}
		}},
		{name: "a toleration that could be meant, of dedicated nodes", code: answer.NodesBusy, exit: 3, fix: "write toleration dedicated=infra for dedicated=team, if the owner of the nodes agrees", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) { p.Tolerations = []corev1.Toleration{{Key: "dedicated", Value: "team"}} })))
			c.S.Nodes[1].Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "infra", Effect: corev1.TaintEffectNoSchedule}}
		}},
		{name: "a toleration with a slip in the key", code: answer.TooBig, exit: 6, wantText: []string{"toleration dedicatde=team:NoSchedule does not match taint dedicated=team:NoSchedule of n1"}, fix: "write toleration dedicated=team:NoSchedule for dedicatde=team:NoSchedule", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) {
				p.Tolerations = []corev1.Toleration{{Key: "dedicatde", Value: "team", Effect: corev1.TaintEffectNoSchedule}}
			})))
			c.S.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "team", Effect: corev1.TaintEffectNoSchedule}}
		}},
		{name: "a toleration of another effect", code: answer.TooBig, exit: 6, wantText: []string{"toleration spot:NoExecute does not match taint spot:NoSchedule"}, fix: "write toleration spot:NoSchedule for spot:NoExecute", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) {
				p.Tolerations = []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}
			})))
			c.S.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "spot", Effect: corev1.TaintEffectNoSchedule}}
		}},
		{name: "tolerations of other things are not meant", code: answer.TooBig, exit: 6, not: []string{"was that meant"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) {
				p.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}
			})))
			c.S.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "infra", Effect: corev1.TaintEffectNoSchedule}}
		}},
		{name: "a job that ends next to a service that does not", code: answer.NodesBusy, exit: 3, wantText: []string{"Deployment serving/web holds 8 GPUs on n2, never ends"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Serves("web", 8, "n2").Add(gangOf(1, 8))
		}},
		{name: "services hold more than it can do without", code: answer.NodesBusy, exit: 5, first: "Deployment serving/web holds 8 GPUs on n2 and never ends: 0 of 16 GPUs free", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Serves("web", 8, "n2").Add(gangOf(2, 8))
		}},
		{name: "workers that stay when their job ends", code: answer.NodesBusy, exit: 5, first: "what MPIJob research/a leaves when it ends .cleanPodPolicy None. holds 16 GPUs on n1, n2 and never ends: 0 of 16 GPUs",
			wantText: []string{"MPIJob research/a holds 16 GPUs on n1, n2, stays when the job ends .cleanPodPolicy None."}, not: []string{"ends about"}, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(mpi("v2beta1", map[string]any{"activeDeadlineSeconds": int64(10800)})).Add(gangOf(2, 8))
			}},
		{name: "workers that stay, of a job that v1 has", code: answer.NodesBusy, exit: 5, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(mpi("v1", map[string]any{"cleanPodPolicy": "None"})).Add(gangOf(2, 8))
		}},
		{name: "workers that go when their job ends", code: answer.NodesBusy, exit: 3, wantText: []string{"MPIJob research/a holds 16 GPUs on n1, n2, ends about 15:00"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(mpi("v2beta1", map[string]any{"cleanPodPolicy": "Running", "activeDeadlineSeconds": int64(10800)})).Add(gangOf(2, 8))
		}},
		{name: "workers that go some time after their job has ended", code: answer.NodesBusy, exit: 3, wantText: []string{"n1, n2, ends about 15:10"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(mpi("v1", map[string]any{"ttlSecondsAfterFinished": int64(600), "activeDeadlineSeconds": int64(10800)})).Add(gangOf(2, 8))
		}},
		{name: "workers that go soon, as their job has ended", code: answer.NodesBusy, exit: 3, wantText: []string{"n1, n2, ends about 14:05"}, not: []string{"left over"}, build: func(c *clustertest.Cluster) {
			ended := mpi("v1", map[string]any{"ttlSecondsAfterFinished": int64(600)})
			running := ended.Job
			ended.Job = func(job map[string]any) {
				running(job)
				set([]any{map[string]any{"type": "Succeeded", "status": "True", "lastTransitionTime": "2026-11-21T13:55:00Z"}}, "status", "conditions")(job)
			}
			c.Nodes(2, 8).Add(ended).Add(gangOf(2, 8))
		}},
		{name: "workers that stay, as the MPI Operator deletes the launcher's Job alone", code: answer.NodesBusy, exit: 5, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(mpi("v2beta1", map[string]any{"ttlSecondsAfterFinished": int64(600)})).Add(gangOf(2, 8))
		}},
		{name: "a parameter server that stays", code: answer.NodesBusy, exit: 5, first: "what TFJob research/a leaves when it ends", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(withServer("n1", "n2")).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.CPU = "32" }))
		}},
		{name: "a parameter server that stays, and the workers' room is enough", code: answer.NodesBusy, exit: 3, wantText: []string{"TFJob research/a holds 8 GPUs on n1"}, not: []string{"stays when"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Node("n2", 0)
			c.Add(withServer("n1", "n2")).Add(gangOf(1, 8))
		}},
		{name: "pods that have ended hold nothing", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			o := other("a", 8, "n1")
			o.Pod = func(_ int, p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
			c.Nodes(1, 8).Add(o).Add(gangOf(1, 8, young))
		}},
		{name: "pods that wait hold nothing", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, GPUs: 8}).Add(gangOf(1, 8, young))
		}},
		{name: "an init container requests more than the others", code: answer.InsufficientCPU, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, CPU: "60", Nodes: []string{"n1"}}).Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) {
				p.InitContainers = []corev1.Container{{Name: "fetch", Resources: corev1.ResourceRequirements{Requests: clustertest.List("cpu", "40")}}}
			})))
		}},
		{name: "fragments", code: answer.Fragmented, exit: 3, first: `8 GPUs on one node; 12 GPUs are free but as 4\+4\+4`, wantText: []string{"0 of 1 members fit now"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 4, "n1").Runs("b", 4, "n2").Runs("d", 4, "n3").Add(gangOf(1, 8))
		}},
		{name: "fragments of which all but one would do", code: answer.Fragmented, exit: 3, wantText: []string{"1 of 2 members fit now"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 4, "n1").Runs("b", 4, "n2").Add(gangOf(2, 8))
		}},
		{name: "cpu is short", code: answer.InsufficientCPU, exit: 3, first: "cpu is short, all else would fit: each worker requests 32, and nodes have at most 16 of 96 left", wantText: []string{"8 GPUs are free there", "research/a holds 80 cpu on n1"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, CPU: "80", Nodes: []string{"n1"}}).Add(gangOf(1, 8, func(g *clustertest.Gang) { g.CPU = "32" }))
		}},
		{name: "memory is short for one of two roles", code: answer.InsufficientMemory, exit: 3, first: "each PS requests 100Gi", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, Memory: "640Gi", Nodes: []string{"n1"}}).Add(gangOf(1, 8, func(g *clustertest.Gang) {
				g.More = []clustertest.Role{{Name: "PS", Replicas: 1, Memory: "100Gi"}}
			}))
		}},
		{name: "cpu is short for the role that requests less, on nodes of its own", code: answer.InsufficientCPU, exit: 3, first: "each PS requests 16, and nodes have at most 0 of 96 left", wantText: []string{"short on n3"}, not: []string{"each worker"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Node("n3", 0)
			label(c, "class", "gpu", "gpu", "cpu")
			c.Add(clustertest.Gang{Namespace: "research", Name: "etl", Workers: 1, CPU: "96", Nodes: []string{"n3"}}).Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.CPU, g.More = "32", []clustertest.Role{{Name: "PS", Replicas: 1, CPU: "16", Spec: func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": "cpu"} }}}
			}))
		}},
		{name: "a port of the nodes is taken", code: answer.Fragmented, exit: 3, first: "a host port keeps it from the room that there is: 0 of 2 members fit with it, all without; 16 GPUs are free", build: func(c *clustertest.Cluster) {
			port := spec(func(p *corev1.PodSpec) { p.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 2222}} })
			o := clustertest.Gang{Namespace: "research", Name: "a", Workers: 2, Nodes: []string{"n1", "n2"}}
			port(&o)
			c.Nodes(2, 8).Add(o).Add(gangOf(2, 8, port))
		}},
		{name: "pods in the network of their node, before they exist, have its ports", code: answer.Fragmented, exit: 3, first: "a host port keeps it from the room that there is: 1 of 2 members fit with it, all without", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n2").Add(gangOf(2, 4, none, young, spec(func(p *corev1.PodSpec) {
				p.HostNetwork, p.Containers[0].Ports = true, []corev1.ContainerPort{{ContainerPort: 29500}}
			})))
		}},
		{name: "limits of pods as a whole, before they exist, are their requests", code: answer.InsufficientCPU, exit: 3, first: "each worker requests 64, and nodes have at most 8 of 96 left", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, CPU: "88", Nodes: []string{"n1"}}).Add(gangOf(1, 8, none, young, spec(func(p *corev1.PodSpec) {
				onlyGPUs(p)
				p.Resources = &corev1.ResourceRequirements{Limits: clustertest.List("cpu", "64", "memory", "256Gi")}
			})))
		}},
		{name: "pod slots are short", code: answer.InsufficientPods, exit: 3, first: "1 of 1 pods on n1", build: func(c *clustertest.Cluster) {
			n := c.Node("n1", 8)
			n.Status.Allocatable["pods"] = resource.MustParse("1")
			c.Runs("a", 0, "n1").Add(gangOf(1, 8))
		}},
		{name: "pod slots are short, and are not on nodes without GPUs", code: answer.InsufficientPods, exit: 3, first: "2 are needed, and 1 of 3 left on n1, n2, as 1$", not: []string{"c1"}, build: func(c *clustertest.Cluster) {
			c.Node("c1", 0)
			c.Node("n1", 8).Status.Allocatable["pods"] = resource.MustParse("1")
			c.Node("n2", 8).Status.Allocatable["pods"] = resource.MustParse("2")
			c.Runs("a", 0, "n1", "n2").Add(gangOf(2, 8))
		}},
		{name: "cpu is short, and is not on nodes with too few GPUs for one", code: answer.InsufficientCPU, exit: 3, first: "and nodes have at most 18 of 96 left: 36 in all, as 18.18$", not: []string{"small"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Node("small", 4)
			c.Add(clustertest.Gang{Namespace: "research", Name: "etl", Workers: 2, CPU: "78", Nodes: []string{"n1", "n2"}}).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.CPU = "20" }))
		}},
	})
}
