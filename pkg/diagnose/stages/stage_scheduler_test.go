package stages_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/gang"
)

func scheduledBy(name string) func(*clustertest.Gang) {
	return func(g *clustertest.Gang) { g.Scheduler = name }
}

func gate(names ...string) func(*clustertest.Gang) {
	return pods(func(_ int, p *corev1.Pod) {
		for _, name := range names {
			p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: name})
		}
	})
}

// gateOn gates one member.
func gateOn(index int, name string) func(*clustertest.Gang) {
	return pods(func(i int, p *corev1.Pod) {
		if i == index {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: name}}
		}
	})
}

// pluginsScheduler adds the scheduler of scheduler-plugins, as its chart installs it, and an operator that gives gangs another name.
func pluginsScheduler(c *clustertest.Cluster) *clustertest.Cluster {
	c.GangScheduler("scheduler-plugins")
	c.Deployment("scheduler-plugins", "scheduler-plugins-scheduler", "registry.k8s.io/scheduler-plugins/kube-scheduler:v0.32.7", "--config=/etc/kubernetes/scheduler-config.yaml")
	return c
}

func TestScheduler(t *testing.T) {
	twoNeeded := func(g *clustertest.Gang) { g.Min, g.Age = 2, 20*time.Second }
	check(t, []testCase{
		{name: "no scheduler serves the name", code: answer.SchedulerNotFound, exit: 4, first: `"volcanoo".*gang, volcano`, wantText: []string{"did you mean volcano"}, fix: "schedulerName: volcano", build: func(c *clustertest.Cluster) {
			c.Deployment("volcano-system", "volcano-scheduler", "volcanosh/vc-scheduler:v1.12")
			c.Nodes(2, 8).Add(gangOf(2, 8, scheduledBy("volcanoo")))
		}},
		{name: "a kube-scheduler may serve the name by its configuration", code: answer.Fits, exit: 3, never: []answer.Code{answer.SchedulerNotFound}, wantText: []string{"which names Deployment scheduler-plugins/scheduler-plugins-scheduler serves is in its configuration"}, build: func(c *clustertest.Cluster) {
			pluginsScheduler(c).Nodes(2, 8).Add(gangOf(2, 8, scheduledBy("scheduler-plugins"), young))
		}},
		{name: "a kube-scheduler with a configuration has not answered for long", code: answer.SchedulerNotFound, exit: 4, first: "scheduler-plugins-scheduler", wantText: []string{"did you mean scheduler-plugins-scheduler", "is in its configuration"}, build: func(c *clustertest.Cluster) {
			pluginsScheduler(c).Nodes(2, 8).Add(gangOf(2, 8, scheduledBy("scheduler-plugins")))
		}},
		{name: "pods of the name have been bound", code: answer.Fits, exit: 3, never: []answer.Code{answer.SchedulerNotFound}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, Nodes: []string{"n1"}, Scheduler: "mine"}).Add(gangOf(2, 8, scheduledBy("mine"), young))
		}},
		{name: "the pods have a condition of a scheduler", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.SchedulerNotFound}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(gangOf(2, 8, scheduledBy("mine"), pods(func(_ int, p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
			})))
		}},
		{name: "a gate is no look of a scheduler", code: answer.SchedulerNotFound, exit: 4, also: []answer.Code{answer.SchedulingGated}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, scheduledBy("mine"), pods(func(_ int, p *corev1.Pod) {
				p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}}
			})))
		}},
		{name: "an event of that name", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, scheduledBy("mine"), young))
			c.Event("Pod", "other", "x", "mine", "Scheduled", "assigned", 5*time.Second)
		}},
		{name: "the default scheduler needs no proof", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, scheduledBy("default-scheduler"), young))
		}},
		{name: "nothing can be known of schedulers", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.S.Deployments, c.S.Leases = nil, nil
			c.S.Denied = []snapshot.Denial{{Resource: "deployments.apps"}, {Resource: "leases.coordination.k8s.io"}}
			c.Nodes(2, 8).Add(gangOf(2, 8, scheduledBy("mine"), young))
		}},
		{name: "the template names no scheduler, the operator does", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, young, spec(func(p *corev1.PodSpec) { p.SchedulerName = "" })))
		}},
		{name: "the lease has run out", code: answer.SchedulerDown, exit: 5, first: "scheduler gang is down: last sign of life 12m ago", wantText: []string{"Lease gangctl-system/gang-scheduler", "1/1 ready"}, build: func(c *clustertest.Cluster) {
			c.S.Leases = nil
			c.Lease("gang-scheduler", 12*time.Minute)
			c.Nodes(2, 8).Add(gangOf(2, 8))
		}},
		{name: "the lease has run out, but it has just spoken", code: answer.Fits, exit: 3, never: []answer.Code{answer.SchedulerDown}, build: func(c *clustertest.Cluster) {
			c.S.Leases = nil
			c.Lease("gang-scheduler", 12*time.Minute)
			c.Nodes(2, 8).Add(gangOf(2, 8, young))
			c.Event("Pod", "team", "x", clustertest.Scheduler, "Scheduled", "assigned", 5*time.Second)
		}},
		{name: "the lease has run out, and another namespace has an event", code: answer.SchedulerDown, exit: 5, build: func(c *clustertest.Cluster) {
			c.S.Leases = nil
			c.Lease("gang-scheduler", 12*time.Minute)
			c.Nodes(2, 8).Add(gangOf(2, 8, young))
			c.Event("Pod", "other", "x", clustertest.Scheduler, "Scheduled", "assigned", 5*time.Second)
		}},
		{name: "scaled to zero", code: answer.SchedulerDown, exit: 5, wantText: []string{"0/0 ready", "scaled to 0", "--replicas=1"}, build: func(c *clustertest.Cluster) {
			zero := int32(0)
			c.S.Leases = nil
			c.S.Deployments[1].Spec.Replicas, c.S.Deployments[1].Status.ReadyReplicas = &zero, 0
			c.Nodes(2, 8).Add(gangOf(2, 8))
		}},
		{name: "it never ran", code: answer.SchedulerDown, exit: 5, first: "no sign that it ever ran", wantText: []string{"ImagePullBackOff"}, build: func(c *clustertest.Cluster) {
			c.S.Leases = nil
			c.S.Deployments[1].Status.ReadyReplicas = 0
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "gangctl-system", Name: "gang-scheduler-0", Labels: map[string]string{"app": "gang-scheduler"}}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
			c.Put(p)
			c.Nodes(2, 8).Add(gangOf(2, 8))
		}},
		{name: "the control plane's scheduler is down", code: answer.SchedulerDown, exit: 5, first: "default-scheduler", build: func(c *clustertest.Cluster) {
			c.Lease("kube-scheduler", 5*time.Minute)
			c.Nodes(2, 8).Add(gangOf(2, 8, scheduledBy("default-scheduler")))
		}},
		{name: "another scheduler is down", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Lease("kube-scheduler", 5*time.Minute)
			c.Nodes(2, 8).Add(gangOf(2, 8, young))
		}},
		{name: "everybody has a node: a dead scheduler does not matter", exit: 0, build: func(c *clustertest.Cluster) {
			c.S.Leases = nil
			c.Lease("gang-scheduler", 12*time.Minute)
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }))
		}},
		{name: "a gate", code: answer.SchedulingGated, exit: 5, first: "example.com/wait holds 2 of 2 pods", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, gate("example.com/wait")))
		}},
		{name: "a gate of pods that are still to be made", code: answer.NSQuotaTooSmall, exit: 6, also: []answer.Code{answer.SchedulingGated}, wantText: []string{"example.com/wait will hold 2 of 2 pods"}, build: func(c *clustertest.Cluster) {
			hard := clustertest.List("requests.nvidia.com/gpu", "8")
			c.Put(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gpus"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard}})
			c.Nodes(2, 8).Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) { p.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}} })))
		}},
		{name: "a gate of a member that is not needed", code: answer.Fits, exit: 3, never: []answer.Code{answer.SchedulingGated}, wantText: []string{"holds 1 of 3 pods: its owner has to lift it; the gang needs 2 of 3"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(3, 8, twoNeeded, gateOn(2, "example.com/wait")))
		}},
		{name: "a gate of a member of a PodGroup of Kubernetes that is not needed", code: answer.SchedulingGated, exit: 5, first: "example.com/wait holds 1 of 3 pods", wantText: []string{"Kubernetes starts no member of a PodGroup while another is gated"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(3, 8, twoNeeded, speaks(c, "native", "default-scheduler"), gateOn(2, "example.com/wait")))
		}},
		{name: "two gates", code: answer.SchedulingGated, exit: 5, also: []answer.Code{answer.SchedulingGated}, wantText: []string{"a.example.com/x", "b.example.com/y"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, gate("a.example.com/x", "b.example.com/y")))
		}},
		{name: "a gate and no room", code: answer.SchedulingGated, exit: 5, also: []answer.Code{answer.TooBig}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8, gate("example.com/wait")))
		}},
		{name: "Volcano lifts its own gate", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.SchedulingGated}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(gangOf(2, 8, gate("scheduling.volcano.sh/queue-allocation-gate"), func(g *clustertest.Gang) { g.Volcano = "q" }))
		}},
	})
}

func TestFits(t *testing.T) {
	old := func(g *clustertest.Gang) { g.Age = 20 * time.Minute }
	tried := func(c *clustertest.Cluster, ago time.Duration) {
		c.Event("Pod", "team", "gang-worker-0", clustertest.Scheduler, "FailedScheduling", "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", ago)
	}
	refuses := func(c *clustertest.Cluster, message string, since time.Duration) {
		c.Event("Pod", "team", "gang-worker-0", clustertest.Scheduler, "FailedScheduling", message, 5*time.Second).FirstTimestamp = clustertest.Ago(since)
	}
	check(t, []testCase{
		{name: "some seconds old", code: answer.Fits, exit: 3, first: "room for all 2 members on n1, n2", wantText: []string{"submitted 4s ago"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Age = 4 * time.Second }))
		}},
		{name: "tried a moment ago", code: answer.Fits, exit: 3, wantText: []string{"last tried 10s ago"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, old))
			tried(c, 10*time.Second)
		}},
		{name: "not tried for long", code: answer.FitsNotPlaced, exit: 5, first: "may have for up to 18m.*scheduler gang does not place it", wantText: []string{"last tried 18m ago; it tries again as soon as a node or a pod changes", "logs deployment/gang-scheduler"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, old))
			tried(c, 18*time.Minute)
		}},
		{name: "refused for a taint that is gone, which may have been just now", code: answer.Fits, exit: 3, wantText: []string{"last tried 18m ago", "no node has taint maintenance=on, as it was at that try: it is not recorded when that changed"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, old))
			c.Event("Pod", "team", "gang-worker-0", clustertest.Scheduler, "FailedScheduling", "0/2 nodes are available: 2 node(s) had untolerated taint {maintenance: on}.", 18*time.Minute)
		}},
		{name: "refused for a taint that is gone, too long ago", code: answer.FitsNotPlaced, exit: 5, first: "may have for up to 50m", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Age = time.Hour }))
			c.Event("Pod", "team", "gang-worker-0", clustertest.Scheduler, "FailedScheduling", "0/2 nodes are available: 2 node(s) had untolerated taint {maintenance: on}.", 50*time.Minute)
		}},
		{name: "refused for a cordon that is gone", code: answer.Fits, exit: 3, wantText: []string{"no node is cordoned, as it was at that try"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, old))
			c.Event("Pod", "team", "gang-worker-0", clustertest.Scheduler, "FailedScheduling", "0/2 nodes are available: 2 node(s) were unschedulable.", 18*time.Minute)
		}},
		{name: "room came at a time that nothing shows, after a try some minutes ago", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, old))
			tried(c, 8*time.Minute)
		}},
		{name: "not tried for long, and a pod was killed just now", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, old))
			tried(c, 18*time.Minute)
			c.Event("Pod", "team", "other-worker-0", "kubelet", "Killing", "Stopping container main", 10*time.Second)
		}},
		{name: "refused for long, for what is not computed", code: answer.FitsNotPlaced, exit: 5, first: "has for 16m, but scheduler gang refuses it, last 5s ago: optimistic rejection in PostFilter", wantText: []string{"logs deployment/gang-scheduler"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, old))
			refuses(c, "optimistic rejection in PostFilter", 16*time.Minute)
		}},
		{name: "refused for long, and a pod was killed just now", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, old))
			refuses(c, "optimistic rejection in PostFilter", 16*time.Minute)
			c.Event("Pod", "team", "other-worker-0", "kubelet", "Killing", "Stopping container main", 10*time.Second)
		}},
		{name: "refused just now, for what is not evaluated", code: answer.FitsNotPlaced, exit: 5,
			first:    "^scheduler gang rejects nodes for what is not evaluated here: 2 node declared features check failed - unsatisfied requirements: UserNamespacesHostNetworkSupport; else there is room for all 2 members on n1, n2",
			wantText: []string{"n1 .kubelet v1.34.6., n2 .kubelet v1.34.6. do not declare UserNamespacesHostNetworkSupport"}, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(gangOf(2, 8))
				for _, n := range c.S.Nodes {
					n.Status.NodeInfo.KubeletVersion = "v1.34.6"
				}
				refuses(c, "0/5 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient nvidia.com/gpu, 2 node declared features check failed - unsatisfied requirements: UserNamespacesHostNetworkSupport. no new claims to deallocate, preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling.", time.Minute)
			}},
		{name: "refused some minutes ago, for what is not evaluated, and a pod was killed since", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8))
			refuses(c, "0/2 nodes are available: 2 node(s) did not have enough free storage.", time.Minute)
			c.Event("Pod", "team", "other-worker-0", "kubelet", "Killing", "Stopping container main", time.Second)
		}},
		{name: "refused for some minutes", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, old))
			refuses(c, "optimistic rejection in PostFilter", 8*time.Minute)
		}},
		{name: "refused for long, for want of what there is, and nothing has changed", code: answer.FitsNotPlaced, exit: 5, first: "has for 16m, but scheduler gang refuses it, last 5s ago: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu$", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, old))
			refuses(c, "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", 16*time.Minute)
		}},
		{name: "refused for long, and a Job has completed just now", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, old))
			refuses(c, "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", 16*time.Minute)
			c.Event("Job", "team", "other", "job-controller", "Completed", "Job completed", 10*time.Second)
		}},
		{name: "refused for long, and something is not evaluated", code: answer.FitsNotPlaced, exit: 5, first: "refuses it, last 5s ago: 2 Insufficient luck; not evaluated, and perhaps why: the list of gangs that are placed together", wantText: []string{"reservations.scheduling.koordinator.sh"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, old, speaks(c, gang.Koordinator, "koord-scheduler"), func(g *clustertest.Gang) {
				g.Group = set("a, b", "metadata", "annotations", "gang.scheduling.koordinator.sh/groups")
			}))
			refuses(c, "2 Insufficient luck", 16*time.Minute)
		}},
		{name: "refused for its NUMA nodes", code: answer.Fits, exit: 3, first: "not evaluated: how what is free on a node is divided among its NUMA nodes", wantText: []string{"n1 .single-numa-node.: no NUMA node of it has 8 GPUs free: 4, 4"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, young))
			c.Event("Pod", "team", "gang-worker-0", clustertest.Scheduler, "FailedScheduling", "0/2 nodes are available: 2 cannot align container.", 5*time.Second)
			zone := map[string]any{"name": "node-0", "type": "Node", "resources": []any{map[string]any{"name": "nvidia.com/gpu", "available": "4"}, map[string]any{"name": "cpu", "available": "48"}}}
			c.Object(map[string]any{"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology", "metadata": map[string]any{"name": "n1"}, "attributes": []any{map[string]any{"name": "topologyManagerPolicy", "value": "single-numa-node"}},
				"zones": []any{zone, zone}})
		}},
		{name: "a file has what Koordinator keeps for others", code: answer.Fits, exit: 3, first: "not evaluated: the Reservations of Koordinator", wantText: []string{"Reservation kept keeps 6 GPUs on n1 for pods that it names", "get reservations.scheduling.koordinator.sh"}, not: []string{"elsewhere", "they are not read"}, build: func(c *clustertest.Cluster) {
			for name, node := range map[string]string{"kept": "n1", "elsewhere": "n9"} {
				c.Object(map[string]any{"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation", "metadata": map[string]any{"name": name}, "status": map[string]any{"phase": "Available", "nodeName": node,
					"allocatable": map[string]any{"nvidia.com/gpu": "8"}, "allocated": map[string]any{"nvidia.com/gpu": "2"}}})
			}
			c.Nodes(2, 8).Add(gangOf(2, 8, young, speaks(c, gang.Koordinator, "koord-scheduler")))
		}},
		{name: "KAI cannot bind it", code: answer.FitsNotPlaced, exit: 5, first: "has for 8m, but scheduler kai-scheduler refuses it, last 5s ago: Failed to bind pod team/gang-worker-0 to node n1", wantText: []string{"Pod gpu-reservation/r has failed: UnexpectedAdmissionError: no runtime"}, build: func(c *clustertest.Cluster) {
			c.Object(map[string]any{"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": map[string]any{"name": "q"}, "spec": map[string]any{}})
			c.Nodes(2, 8).Add(gangOf(2, 8, old, speaks(c, gang.KAI, "kai-scheduler")))
			c.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-reservation", Name: "r"}, Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError", Message: "no runtime"}})
			c.Event("Pod", "team", "gang-worker-0", "binder", "BindingError", "Failed to bind pod team/gang-worker-0 to node n1: failed waiting for GPU reservation pod to allocate: gpu-reservation/r", 5*time.Second).FirstTimestamp = clustertest.Ago(8 * time.Minute)
		}},
		{name: "its tries fail", code: answer.FitsNotPlaced, exit: 5, first: "has for 8m, but scheduler gang refuses it, last 5s ago: failed filter with extender", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, old, pods(func(_ int, p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulerError, LastTransitionTime: clustertest.Ago(8 * time.Minute)}}
			})))
			refuses(c, "failed filter with extender at URL http://127.0.0.1, code 400", 8*time.Minute)
		}},
		{name: "it has nodes, and what its scheduler calls refuses one", code: answer.Fits, exit: 3, first: "fits now: .*; but scheduler gang could not finish its last try at pod gang-worker-0: binding denied by policy p", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, old, pods(func(_ int, p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulerError, Message: "binding denied by policy p", LastTransitionTime: clustertest.Ago(20 * time.Second)}}
			})))
		}},
		{name: "Karpenter's reports are no tries of the scheduler", code: answer.FitsNotPlaced, exit: 5, first: "scheduler gang does not place it", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, old))
			c.Event("Pod", "team", "gang-worker-0", "karpenter", "FailedScheduling", "Failed to schedule pod, incompatible with nodepool", 5*time.Second)
		}},
		{name: "never tried", code: answer.FitsNotPlaced, exit: 5, build: func(c *clustertest.Cluster) { c.Nodes(2, 8).Add(gangOf(2, 8, old)) }},
		{name: "a node came a moment ago", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Node("n2", 8).CreationTimestamp = clustertest.Ago(20 * time.Second)
			c.Add(gangOf(2, 8, old))
		}},
		{name: "a node became ready a moment ago", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, old))
			c.S.Nodes[1].Status.Conditions[0].LastTransitionTime = clustertest.Ago(30 * time.Second)
		}},
		{name: "a pod ended a moment ago", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(gangOf(2, 8, old))
			p := c.S.Pods[0]
			p.Status.Phase = corev1.PodSucceeded
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: clustertest.Ago(30 * time.Second)}}
		}},
		{name: "the condition of the pod has the time", code: answer.FitsNotPlaced, exit: 5, wantText: []string{"last tried 17m ago"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, old, pods(func(_ int, p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", LastTransitionTime: clustertest.Ago(17 * time.Minute)}}
			})))
		}},
		{name: "the condition of the group has the time", code: answer.Fits, exit: 3, wantText: []string{"last tried 30s ago"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, old, func(g *clustertest.Gang) {
				g.Volcano, g.Group = "q", set([]any{clustertest.Condition("Unschedulable", "True", "NotEnoughResources", "2/2 tasks in gang unschedulable", 30*time.Second)}, "status", "conditions")
			}))
		}},
		{name: "one member", code: answer.Fits, exit: 3, first: "room for its 1 member on n1", build: func(c *clustertest.Cluster) { c.Nodes(1, 8).Add(gangOf(1, 8, young)) }},
		{name: "the rest of it", code: answer.Fits, exit: 3, first: "the other 1 of 2 members on n2", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, young, func(g *clustertest.Gang) { g.Nodes = []string{"n1"} }))
		}},
	})
}

// What is known of a scheduler follows from its Deployment, its lease, its messages, and the pods that it has bound.
func TestFindScheduler(t *testing.T) {
	tests := []struct {
		name, scheduler string
		image, args     string
		served          bool
	}{
		{"by its flag", "mine", "anything", "--scheduler-name=mine", true},
		{"by its flag in two arguments", "mine", "anything", "--scheduler-name mine", true},
		{"the flag has another name", "sched", "anything", "--scheduler-name=mine", false},
		{"by the Deployment's name", "sched", "anything", "", true},
		{"Volcano", "volcano", "volcanosh/vc-scheduler:v1.12@sha256:0", "", true},
		{"Volcano's controller is no scheduler", "volcano", "volcanosh/vc-controller-manager:v1.12", "", false},
		{"Koordinator", "koord-scheduler", "reg/koordinatorsh/koord-scheduler:v1.8", "", true},
		{"YuniKorn", "yunikorn", "apache/yunikorn:scheduler-1.9.0", "", true},
		{"KAI", "kai-scheduler", "ghcr.io/nvidia/kai-scheduler/scheduler:v0.12", "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := clustertest.New()
			d := c.Deployment("x", "sched", tt.image)
			if tt.args != "" {
				d.Spec.Template.Spec.Containers[0].Command = append([]string{"/scheduler"}, strings.Fields(tt.args)...)
			}
			s := component.FindScheduler(view.New(c.Done()), tt.scheduler, "")
			if (len(s.Deployments) > 0) != tt.served {
				t.Errorf("got %v", s.Deployments)
			}
		})
	}
	if s := component.FindScheduler(view.New(clustertest.New().Done()), clustertest.Scheduler, ""); s.Down(clustertest.Now) || s.LastSeen.IsZero() || s.BoundBefore {
		t.Errorf("got %+v", s)
	}
}
