package stages_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

func TestPasses(t *testing.T) {
	going := func(left time.Duration) clustertest.Gang {
		o := other("a", 8, "n1")
		o.Pod = terminating(left)
		return o
	}
	order := func(c *clustertest.Cluster, reason, message string, ago time.Duration) {
		c.Event("Pod", "team", "gang-worker-0", "cluster-autoscaler", reason, message, ago)
	}
	group := func(c *clustertest.Cluster, n int) {
		c.Nodes(n, 8)
		for _, node := range c.S.Nodes {
			node.Labels["nodegroup"] = "ng"
		}
	}
	nominates := func(c *clustertest.Cluster) {
		c.Event("Pod", "team", "gang-worker-0", "karpenter", "Nominated", "Pod should schedule on: nodeclaim/gpu-x7k2p", 4*time.Minute)
	}
	claim := func(c *clustertest.Cluster, name string, status map[string]any) {
		c.Object(map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": map[string]any{"name": name, "labels": map[string]any{"karpenter.sh/nodepool": "gpu"}}, "status": status})
	}
	launched := func(status, reason, message string) map[string]any {
		return map[string]any{"conditions": []any{clustertest.Condition("Launched", status, reason, message, 3*time.Minute)}}
	}
	promised := func(gpus string) map[string]any {
		return map[string]any{"allocatable": map[string]any{"cpu": "96", "memory": "768Gi", "ephemeral-storage": "1Ti", "pods": "110", "nvidia.com/gpu": gpus}}
	}
	check(t, []testCase{
		{name: "victims leave", code: answer.VictimsTerminating, exit: 3, first: "research/a is being deleted, and then it fits: at most 4m40s left", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(going(280 * time.Second)).Add(gangOf(1, 8))
		}},
		{name: "victims of preemption leave", code: answer.VictimsTerminating, exit: 3, first: "being preempted", build: func(c *clustertest.Cluster) {
			o := going(time.Minute)
			o.Pod = func(i int, p *corev1.Pod) {
				terminating(time.Minute)(i, p)
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "PreemptionByScheduler"}}
			}
			c.Nodes(1, 8).Add(o).Add(gangOf(1, 8))
		}},
		{name: "only those whose room it needs are named", code: answer.VictimsTerminating, exit: 3, not: []string{"research/b"}, build: func(c *clustertest.Cluster) {
			b := other("b", 0, "cpu1")
			b.Pod = terminating(time.Minute)
			c.Nodes(1, 8)
			c.Node("cpu1", 0)
			c.Add(going(time.Minute)).Add(b).Add(gangOf(1, 8))
		}},
		{name: "its own earlier pods leave", code: answer.VictimsTerminating, exit: 3, first: "team/old-0, team/old-1 are being deleted, and then it fits: at most 60s left", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			earlier(c, "Job", time.Minute)
		}},
		{name: "the earlier pods of a Job of its JobSet leave", code: answer.VictimsTerminating, exit: 3, first: "team/old-0, team/old-1 are being deleted", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			earlier(c, "JobSet", time.Minute)
		}},
		{name: "its own earlier pods should be gone for long", code: answer.StuckTerminating, exit: 5, wantText: []string{"team/old-0|pod old-0"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			earlier(c, "Job", -time.Hour)
		}},
		{name: "some leave, which is not enough", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.VictimsTerminating}, wantText: []string{"research/a holds 8 GPUs on n1, is going"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(going(time.Minute)).Runs("b", 8, "n2").Add(gangOf(2, 8))
		}},
		{name: "nodes are ordered", code: answer.ScalingUp, exit: 3, first: "2 nodes are coming.*1m ago|2 nodes are coming: the autoscaler ordered them 60s ago", build: func(c *clustertest.Cluster) {
			group(c, 1)
			c.Add(gangOf(3, 8))
			order(c, "TriggeredScaleUp", "pod triggered scale-up: [{ng 1->3 (max: 8)}]", time.Minute)
		}},
		{name: "nodes are ordered, but too few", code: answer.TooBig, exit: 6, never: []answer.Code{answer.ScalingUp}, build: func(c *clustertest.Cluster) {
			group(c, 1)
			c.Add(gangOf(3, 8))
			order(c, "TriggeredScaleUp", "pod triggered scale-up: [{ng 1->2 (max: 2)}]", time.Minute)
		}},
		{name: "nodes were ordered long ago", code: answer.TooBig, exit: 6, build: func(c *clustertest.Cluster) {
			group(c, 1)
			c.Add(gangOf(3, 8))
			order(c, "TriggeredScaleUp", "pod triggered scale-up: [{ng 1->3 (max: 8)}]", time.Hour)
		}},
		{name: "of a group without a node", code: answer.ScalingUp, exit: 3, wantText: []string{"cannot be determined"}, build: func(c *clustertest.Cluster) {
			group(c, 1)
			c.Add(gangOf(3, 8))
			order(c, "TriggeredScaleUp", "pod triggered scale-up: [{fresh 0->3 (max: 8)}]", time.Minute)
		}},
		{name: "of a group that no node names", code: answer.ScalingUp, exit: 3, first: "1 node is coming: the autoscaler ordered it", wantText: []string{"whether it is enough cannot be determined: no node carries the name of group fresh"}, build: func(c *clustertest.Cluster) {
			group(c, 1)
			c.Add(gangOf(3, 8))
			order(c, "TriggeredScaleUp", "pod triggered scale-up: [{fresh 1->2 (max: 8)}]", time.Minute)
		}},
		{name: "the autoscaler refuses", code: answer.NodesBusy, exit: 3, wantText: []string{"added no nodes.*1 max node group size reached", "node group ng may have 1 to 2 nodes and has 2"}, build: func(c *clustertest.Cluster) {
			group(c, 2)
			c.Deployment("kube-system", "ca", "registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.1", "--nodes=1:2:ng")
			c.Runs("a", 8, "n1", "n2").Add(gangOf(2, 8))
			order(c, "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached", time.Minute)
		}},
		{name: "Karpenter brings a node", code: answer.ScalingUp, exit: 3, first: "1 node is coming|nodeclaim/gpu-x7k2p", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8))
			c.Event("Pod", "team", "gang-worker-0", "karpenter", "Nominated", "Pod should schedule on: nodeclaim/gpu-x7k2p", time.Minute)
		}},
		{name: "Karpenter's node has come", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.ScalingUp}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8))
			c.Event("Pod", "team", "gang-worker-0", "karpenter", "Nominated", "Pod should schedule on: nodeclaim/gpu-x7k2p, node/n1", time.Minute)
		}},
		{name: "a new node is not ready yet", code: answer.ScalingUp, exit: 3, first: "n2 is joining the cluster, and then it fits", wantText: []string{"n2 was created 60s ago: n2 is marked as unfit: node.cilium.io/agent-not-ready"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8))
			joins(c.Node("n2", 8), "node.cilium.io/agent-not-ready", time.Minute)
		}},
		{name: "a node is not registered for long", code: answer.NodeNotReady, exit: 5, first: "n2 is kept closed by taint karpenter.sh/unregistered, and the others are too few", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8))
			joins(c.Node("n2", 8), "karpenter.sh/unregistered", time.Hour)
		}},
		{name: "a new node is taken back", code: answer.NodeNotReady, exit: 5, never: []answer.Code{answer.ScalingUp}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8))
			joins(c.Node("n2", 8), "aws-node-termination-handler/spot-itn", time.Minute)
		}},
		{name: "a new node has no devices yet", code: answer.ScalingUp, exit: 3, first: "^n2 is joining the cluster, and then it fits$", wantText: []string{"n2 was created 2m ago: its device plugin has not advertised GPUs yet"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8))
			bare(c, "n2", 2*time.Minute).Labels["nvidia.com/gpu.count"] = "8"
		}},
		{name: "the first node of the cluster with devices has none yet", code: answer.ScalingUp, exit: 3, first: "^n2 is joining the cluster", never: []answer.Code{answer.NoDevicePlugin}, build: func(c *clustertest.Cluster) {
			plugin(c, "nvidia-device-plugin", 0, 1)
			c.Nodes(1, 0).Add(gangOf(1, 8))
			bare(c, "n2", 2*time.Minute).Labels["nvidia.com/gpu.count"] = "8"
			order(c, "TriggeredScaleUp", "pod triggered scale-up: [{ng 0->1 (max: 8)}]", 5*time.Minute)
		}},
		{name: "a new node is like one that has devices", code: answer.ScalingUp, exit: 3, first: "^n2 is joining the cluster", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8))
			bare(c, "n2", 2*time.Minute)
			for _, n := range c.S.Nodes {
				n.Labels[corev1.LabelInstanceTypeStable] = "p5"
			}
		}},
		{name: "a node has had no devices for long", code: answer.NoDevicePlugin, exit: 5, never: []answer.Code{answer.ScalingUp}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8))
			bare(c, "n2", time.Hour).Labels["nvidia.com/gpu.count"] = "8"
		}},
		{name: "a new node whose devices would not help", code: answer.TooBig, exit: 6, first: "16 GPUs on 2 nodes", wantText: []string{"counted as there: n2 is joining the cluster"}, never: []answer.Code{answer.NoDevicePlugin}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(3, 8))
			bare(c, "n2", 2*time.Minute).Labels["nvidia.com/gpu.count"] = "8"
		}},
		{name: "a new node of no use", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.ScalingUp}, not: []string{"cpu9"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8))
			joins(c.Node("cpu9", 0), "node.cilium.io/agent-not-ready", time.Minute)
		}},
		{name: "a node is ordered, and a job has to end", code: answer.NodesBusy, exit: 3, first: "needs 2 workers with 8 GPUs each, 16 in all; of these nodes 1 is still on the way$", also: []answer.Code{answer.ScalingUp},
			wantText: []string{"1 node is coming: the autoscaler ordered it 60s ago .*, which is a part of what it waits for", "research/a holds 8 GPUs on n1"}, build: func(c *clustertest.Cluster) {
				group(c, 1)
				c.Runs("a", 8, "n1").Add(gangOf(2, 8))
				order(c, "TriggeredScaleUp", "pod triggered scale-up: [{ng 1->2 (max: 2)}]", time.Minute)
			}},
		{name: "a new node joins, and a job has to end", code: answer.NodesBusy, exit: 3, also: []answer.Code{answer.ScalingUp}, wantText: []string{"n2 is joining the cluster, which is a part of what it waits for"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(2, 8))
			bare(c, "n2", 2*time.Minute).Labels["nvidia.com/gpu.count"] = "8"
		}},
		{name: "a node is ordered, and a service never ends", code: answer.NodesBusy, exit: 5, also: []answer.Code{answer.ScalingUp}, build: func(c *clustertest.Cluster) {
			group(c, 1)
			c.Serves("web", 8, "n1").Add(gangOf(2, 8))
			order(c, "TriggeredScaleUp", "pod triggered scale-up: [{ng 1->2 (max: 2)}]", time.Minute)
		}},
		{name: "an order for one member, and a refusal for another", code: answer.NodesBusy, exit: 3, also: []answer.Code{answer.ScalingUp}, build: func(c *clustertest.Cluster) {
			group(c, 1)
			c.Runs("a", 8, "n1").Add(gangOf(2, 8))
			order(c, "TriggeredScaleUp", "pod triggered scale-up: [{ng 1->2 (max: 2)}]", time.Minute)
			c.Event("Pod", "team", "gang-worker-1", "cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached", 20*time.Second)
		}},
		{name: "an order is for no more nodes than the gang has members", code: answer.ScalingUp, exit: 3, first: "999999998 nodes are coming|999,999,998", build: func(c *clustertest.Cluster) {
			group(c, 1)
			c.Runs("a", 8, "n1").Add(gangOf(2, 8))
			order(c, "TriggeredScaleUp", "pod triggered scale-up: [{ng 1->999999999 (max: 999999999)}]", time.Minute)
		}},
		{name: "a node that Karpenter cannot launch", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.ScalingUp}, wantText: []string{"what karpenter ordered 4m ago is not there: no capacity for p5"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8))
			nominates(c)
			claim(c, "gpu-x7k2p", launched("Unknown", "LaunchFailed", "no capacity for p5"))
		}},
		{name: "a node that Karpenter is about to launch", code: answer.ScalingUp, exit: 3, first: "1 node is coming: karpenter ordered 4m ago .gpu-x7k2p.", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8))
			nominates(c)
			claim(c, "gpu-x7k2p", launched("Unknown", "AwaitingReconciliation", "object is awaiting reconciliation"))
		}},
		{name: "an order that Karpenter gave up", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.ScalingUp}, wantText: []string{"NodeClaim gpu-x7k2p does not exist any more: no capacity"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8))
			nominates(c)
			claim(c, "gpu-other", nil)
			c.Event("NodeClaim", "default", "gpu-x7k2p", "karpenter", "InsufficientCapacityError", "no capacity", 3*time.Minute)
		}},
		{name: "the node of a NodeClaim is there", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.ScalingUp}, not: []string{"karpenter"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8))
			nominates(c)
			claim(c, "gpu-x7k2p", map[string]any{"nodeName": "n1"})
		}},
		{name: "a NodeClaim says what its node will have", code: answer.ScalingUp, exit: 3, first: "1 node is coming: karpenter ordered it 4m ago .gpu-x7k2p., and then it fits", not: []string{"cannot be determined"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8))
			nominates(c)
			claim(c, "gpu-x7k2p", promised("8"))
		}},
		{name: "the node of a NodeClaim is too small", code: answer.NodesBusy, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8))
			nominates(c)
			claim(c, "gpu-x7k2p", promised("4"))
		}},
		{name: "a group does not get the nodes that were ordered", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.ScalingUp}, wantText: []string{"what cluster-autoscaler ordered 8m ago is not there: Failed adding 1 nodes to group ng due to"}, build: func(c *clustertest.Cluster) {
			group(c, 1)
			c.Runs("a", 8, "n1").Add(gangOf(1, 8))
			order(c, "TriggeredScaleUp", "pod triggered scale-up: [{ng 1->2 (max: 3)}]", 8*time.Minute)
			c.Event("ConfigMap", "kube-system", "cluster-autoscaler-status", "cluster-autoscaler", "ScaleUpFailed", "Failed adding 1 nodes to group ng due to Other.NoCapacity; source errors: none", 5*time.Minute)
		}},
		{name: "another group does not get its nodes, and this one did not before", code: answer.ScalingUp, exit: 3, build: func(c *clustertest.Cluster) {
			group(c, 1)
			c.Runs("a", 8, "n1").Add(gangOf(1, 8))
			order(c, "TriggeredScaleUp", "pod triggered scale-up: [{ng 1->2 (max: 3)}]", 8*time.Minute)
			c.Event("ConfigMap", "kube-system", "cluster-autoscaler-status", "cluster-autoscaler", "ScaleUpTimedOut", "Nodes added to group ng failed to register within 15m0s", 15*time.Minute)
			c.Event("ConfigMap", "kube-system", "cluster-autoscaler-status", "cluster-autoscaler", "FailedToScaleUpGroup", "Scale-up failed for group ng2: no", 5*time.Minute)
		}},
		{name: "too big, and the autoscaler refuses", code: answer.TooBig, exit: 6, wantText: []string{"cluster-autoscaler added no nodes, as it reported 60s ago: .*1 max node group size reached"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8))
			order(c, "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached", time.Minute)
		}},
		{name: "too big, and Karpenter refuses one of two members", code: answer.TooBig, exit: 5, wantText: []string{"karpenter added no node for gang-worker-1, .*exceed limits", "1 node is coming: karpenter ordered 4m ago .gpu-x7k2p.; what such nodes will have is not known yet"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8))
			c.Runs("a", 8, "n1")
			nominates(c)
			c.Event("Pod", "team", "gang-worker-1", "karpenter", "FailedScheduling", `Failed to schedule pod, all available instance types exceed limits for nodepool: "gpu"`, time.Minute)
		}},
		{name: "a new node has the startup taint of its pool", code: answer.ScalingUp, exit: 3, first: "n2 is joining the cluster", wantText: []string{"n2 is marked as unfit: acme.io/burn-in"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8))
			burnsIn(c, time.Minute)
		}},
		{name: "an agent crashes on nodes that are Ready", code: answer.NodeNotReady, exit: 5, first: "^n1, n2 are kept closed by taint node.cilium.io/agent-not-ready, and the others are too few: 1/3 members fit; [^;]*$", fix: "get DaemonSet kube-system/cilium to run on n1, n2",
			wantText: []string{"DaemonSet kube-system/cilium, which looks like what takes taint node.cilium.io/agent-not-ready away, has trouble on n1, n2", "pod cilium-n2 on n2: CrashLoopBackOff, 9 restarts", "kubectl -n kube-system logs cilium-n1 --previous --tail=50"}, not: []string{"cpu is short"}, build: func(c *clustertest.Cluster) {
				agent := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cilium"}, Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "cilium"}}}}
				c.Nodes(3, 8).Add(gangOf(3, 8, func(g *clustertest.Gang) { g.CPU = "32" })).Put(&agent)
				for i, n := range c.S.Nodes {
					p := c.Daemon("cilium-x", n.Name, "100m")
					p.Name, p.Labels, p.Status.ContainerStatuses = "cilium-"+n.Name, map[string]string{"k8s-app": "cilium"}, []corev1.ContainerStatus{{Name: "agent", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
					if i < 2 {
						joins(n, "node.cilium.io/agent-not-ready", time.Hour)
						p.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "agent", RestartCount: 9, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}
					}
				}
			}},
		{name: "the controller of the cloud does not take nodes in", code: answer.NodeNotReady, exit: 5, first: "^n2 is kept closed by taint node.cloudprovider.kubernetes.io/uninitialized", fix: "get Deployment kube-system/aws-cloud-controller-manager to run again",
			wantText: []string{"aws-cloud-controller-manager, which takes new nodes in and taint node.cloudprovider.kubernetes.io/uninitialized away, has 0 of 1 pod ready", "logs deployment/aws-cloud-controller-manager"}, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(gangOf(2, 8))
				joins(c.S.Nodes[1], "node.cloudprovider.kubernetes.io/uninitialized", time.Hour)
				c.Deployment("kube-system", "aws-cloud-controller-manager", "registry.k8s.io/provider-aws/cloud-controller-manager:v1.34.0").Status.ReadyReplicas = 0
			}},
		{name: "a node is under disk pressure", code: answer.NodeNotReady, exit: 5, first: "^n2 is under disk pressure, and the others are too few", wantText: []string{"n2 is under disk pressure for 45m: KubeletHasDiskPressure kubelet has disk pressure"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8))
			n := c.S.Nodes[1]
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule}}
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue, Reason: "KubeletHasDiskPressure", Message: "kubelet has disk pressure", LastTransitionTime: clustertest.Ago(45 * time.Minute)})
		}},
		{name: "Karpenter removes nodes, and a budget holds that up", code: answer.TooBig, exit: 5, first: "^n1, n2 .16 GPUs. are being deleted, for 95m, and without them it needs 3 workers with 8 GPUs each", wantText: []string{"karpenter reported of n1 2m ago: Failed to drain node",
			"what is still there holds that up: PodDisruptionBudget serving/web lets none of", "Karpenter adds others of NodePool gpu", "get pods -A -o wide --field-selector spec.nodeName=n1"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).ServesWith("web", 0, "1", "n1", "n2").Add(gangOf(3, 8))
			c.Object(map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": "gpu"}, "spec": map[string]any{}, "status": map[string]any{}})
			at := clustertest.Ago(95 * time.Minute)
			for _, n := range c.S.Nodes[:2] {
				n.DeletionTimestamp, n.Labels["karpenter.sh/nodepool"] = &at, "gpu"
				n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}
				c.Event("Node", "", n.Name, "karpenter", "FailedDraining", "Failed to drain node, 1 pods are waiting to be evicted", 2*time.Minute)
			}
			c.Put(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "serving", Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}})
		}},
		{name: "a node has the startup taint of its pool for long", code: answer.NodeNotReady, exit: 5, first: "n2 is kept closed by taint acme.io/burn-in", wantText: []string{"n2 is marked as unfit: acme.io/burn-in"}, not: []string{"tolerate"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8))
			burnsIn(c, time.Hour)
		}},
		{name: "a node that has started has a taint like that of its pool", code: answer.TooBig, exit: 6, never: []answer.Code{answer.ScalingUp}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8))
			burnsIn(c, time.Minute).Labels["karpenter.sh/initialized"] = "true"
		}},
		{name: "a node is being repaired", code: answer.NodeNotReady, exit: 5, first: "n2 is kept closed by taint medik8s.io/remediation", wantText: []string{"medik8s.io/remediation"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8))
			joins(c.Node("n2", 8), "medik8s.io/remediation", time.Hour)
		}},
		{name: "a node is being replaced by its provider", code: answer.NodeNotReady, exit: 5, first: "n2 is kept closed by taint sagemaker.amazonaws.com/node-health-status", wantText: []string{"n2 is marked as unfit: sagemaker.amazonaws.com/node-health-status"}, not: []string{"tolerate"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8))
			joins(c.Node("n2", 8), "sagemaker.amazonaws.com/node-health-status", time.Hour)
		}},
		{name: "Karpenter refuses", code: answer.NodesBusy, exit: 3, wantText: []string{"karpenter added no nodes.*incompatible with nodepool"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8))
			c.Event("Pod", "team", "gang-worker-0", "karpenter", "FailedScheduling", `Failed to schedule pod, incompatible with nodepool "gpu"`, time.Minute)
		}},
	})
}

// burnsIn adds a node so old with a taint that its NodePool declares for nodes that start.
func burnsIn(c *clustertest.Cluster, age time.Duration) *corev1.Node {
	taint := map[string]any{"key": "acme.io/burn-in", "value": "true", "effect": "NoExecute"}
	c.Object(map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": "gpu"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"startupTaints": []any{taint}}}}})
	n := c.Node("n2", 8)
	n.Labels["karpenter.sh/nodepool"] = "gpu"
	joins(n, "acme.io/burn-in", age)
	return n
}

// bare adds a node so old that advertises no devices.
func bare(c *clustertest.Cluster, name string, age time.Duration) *corev1.Node {
	n := c.Node(name, 0)
	n.CreationTimestamp = clustertest.Ago(age)
	return n
}

// joins has a node with a taint be so old.
func joins(n *corev1.Node, taint string, age time.Duration) {
	n.CreationTimestamp = clustertest.Ago(age)
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: taint, Effect: corev1.TaintEffectNoExecute})
}

// earlier adds a gang of two that waits, with the two pods on n1 and n2 that it had before, which have so long left.
func earlier(c *clustertest.Cluster, kind string, left time.Duration) {
	g := gangOf(2, 8)
	g.Kind = kind
	c.Add(g)
	for i, p := range slices.Clone(c.S.Pods[len(c.S.Pods)-2:]) {
		old := p.DeepCopy()
		old.Name, old.UID = fmt.Sprintf("old-%d", i), types.UID(fmt.Sprintf("old-%d", i))
		old.CreationTimestamp = clustertest.Ago(time.Hour)
		old.Spec.NodeName, old.Status.Phase = fmt.Sprintf("n%d", i+1), corev1.PodRunning
		terminating(left)(i, old)
		c.Put(old)
	}
}
