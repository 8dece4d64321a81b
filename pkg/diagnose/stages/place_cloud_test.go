package stages_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// claimed adds the NodeClaim of a node, with so many GPUs; machine is the instance of one that is not registered yet.
func claimed(c *clustertest.Cluster, name, node, machine, gpus string) {
	c.Object(map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": map[string]any{"name": name, "labels": map[string]any{"karpenter.sh/nodepool": "gpu"}},
		"status": map[string]any{"nodeName": node, "providerID": machine, "allocatable": map[string]any{"cpu": "96", "memory": "768Gi", "ephemeral-storage": "1Ti", "pods": "110", "nvidia.com/gpu": gpus}}})
}

// nodePool adds a NodePool with a limit of GPUs and as many as it has; ready is its condition.
func nodePool(c *clustertest.Cluster, limit, has, ready string) {
	c.Object(map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": "gpu"}, "spec": map[string]any{"limits": map[string]any{"nvidia.com/gpu": limit}},
		"status": map[string]any{"resources": map[string]any{"nvidia.com/gpu": has}, "conditions": []any{clustertest.Condition("Ready", ready, "NodeClassNotReady", "", time.Hour)}}})
}

// reports adds an event of an autoscaler about each of some members.
func reports(c *clustertest.Cluster, by, reason, message string, ago time.Duration, members ...int) {
	for _, i := range members {
		c.Event("Pod", "team", fmt.Sprintf("gang-worker-%d", i), by, reason, message, ago)
	}
}

// The node of a NodeClaim will have what the claim promises, from when it joins until its plugin offers it.
func TestNodeOfClaimJoins(t *testing.T) {
	check(t, []testCase{
		{name: "the first nodes with devices", code: answer.ScalingUp, exit: 3, first: "^n1, n2 are joining the cluster, and then it fits$", never: []answer.Code{answer.ResourceNotOffered}, build: func(c *clustertest.Cluster) {
			c.Node("cpu1", 0)
			for i, name := range []string{"n1", "n2"} {
				joins(bare(c, name, time.Minute), "node.cilium.io/agent-not-ready", time.Minute)
				claimed(c, fmt.Sprintf("gpu-%d", i), name, "", "8")
				reports(c, "karpenter", "Nominated", fmt.Sprintf("Pod should schedule on: nodeclaim/gpu-%d, node/%s", i, name), 30*time.Second, i)
			}
			c.Add(gangOf(2, 8))
		}},
		{name: "one more node", code: answer.ScalingUp, exit: 3, first: "^n2 is joining the cluster, and then it fits$", never: []answer.Code{answer.TooBig}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8))
			clustertest.NotReady(bare(c, "n2", time.Minute), time.Minute)
			claimed(c, "gpu-0", "n2", "", "8")
		}},
		{name: "a node that is not registered counts once", code: answer.TooBig, exit: 6, first: "16 GPUs on 2 nodes", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(3, 8))
			joins(bare(c, "n2", time.Minute), "karpenter.sh/unregistered", time.Minute)
			c.S.Nodes[1].Spec.ProviderID = "aws:///us-east-1a/i-1"
			claimed(c, "gpu-0", "", "aws:///us-east-1a/i-1", "8")
			reports(c, "karpenter", "Nominated", "Pod should schedule on: nodeclaim/gpu-0", time.Minute, 0)
		}},
		{name: "it has had no devices for long", code: answer.NoDevicePlugin, exit: 5, first: "1 node .n1. looks like it has GPUs and advertises none", build: func(c *clustertest.Cluster) {
			bare(c, "n1", time.Hour)
			claimed(c, "gpu-0", "n1", "", "8")
			c.Add(gangOf(1, 8))
		}},
		{name: "it has had no devices for long, and others have", code: answer.NoDevicePlugin, exit: 5, first: "1 node .n2. looks like it has GPUs", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8))
			bare(c, "n2", time.Hour)
			claimed(c, "gpu-0", "n2", "", "8")
		}},
	})
}

// Each cloud, and node feature discovery, labels nodes with GPUs in its own way.
func TestLabelsOfDevices(t *testing.T) {
	labelled := map[string]map[string]string{
		"Google":    {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb", "cloud.google.com/gke-accelerator-count": "8"},
		"Amazon":    {"k8s.amazonaws.com/accelerator": "nvidia-h100-80gb", "nvidia.com/gpu.count": "8"},
		"Azure":     {"kubernetes.azure.com/accelerator": "nvidia", "karpenter.azure.com/sku-gpu-count": "8"},
		"Karpenter": {"karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia", "karpenter.k8s.aws/instance-gpu-count": "8"},
		"discovery": {"feature.node.kubernetes.io/pci-0302_10de.present": "true", "nvidia.com/gpu.count": "8"},
	}
	var cases []testCase
	for by, labels := range labelled {
		cases = append(cases, testCase{name: by + ": on no node a plugin works", code: answer.NoDevicePlugin, exit: 5, first: "2 nodes .n1, n2. look like they have GPUs and advertise none", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0).Add(gangOf(2, 8))
			for _, n := range c.S.Nodes {
				maps.Copy(n.Labels, labels)
			}
			c.Node("cpu1", 0)
		}}, testCase{name: by + ": on one node none works", code: answer.NoDevicePlugin, exit: 5, first: "1 node .n2. looks like it has GPUs", wantText: []string{"with them it would fit an empty cluster"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8))
			maps.Copy(c.Node("n2", 0).Labels, labels)
		}}, testCase{name: by + ": a new node", code: answer.ScalingUp, exit: 3, first: "^n2 is joining the cluster, and then it fits$", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8))
			maps.Copy(bare(c, "n2", time.Minute).Labels, labels)
		}})
	}
	check(t, append(cases,
		testCase{name: "new nodes, and nothing counts their devices", code: answer.ScalingUp, exit: 3, first: "^n1, n2 are joining the cluster, and their device plugin has not advertised GPUs yet$", wantText: []string{"how many they will have is not known"}, build: func(c *clustertest.Cluster) {
			for _, name := range []string{"n1", "n2"} {
				bare(c, name, time.Minute).Labels["cloud.google.com/gke-accelerator"] = "nvidia-l4"
			}
			c.Add(gangOf(2, 8))
		}},
		testCase{name: "a DRA driver offers them", code: answer.TooBig, exit: 6, never: []answer.Code{answer.NoDevicePlugin}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8))
			n := c.Node("n2", 0)
			n.Labels["nvidia.com/gpu.count"] = "8"
			c.Put(&resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "n2"}, Spec: resourceapi.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: &n.Name}})
		}},
		testCase{name: "another vendor", code: answer.ResourceNotOffered, exit: 4, never: []answer.Code{answer.NoDevicePlugin}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0).Add(gangOf(2, 8))
			label(c, "karpenter.k8s.aws/instance-gpu-manufacturer", "amd", "amd")
		}}))
}

// The ids that the cluster autoscaler has for node groups are not what is on their nodes.
func TestNodeGroups(t *testing.T) {
	const google = "https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a/instanceGroups/gke-prod-h100-1a2b3c4d-grp"
	const eks, eksctl, azure = "eks-ng-gpu-26c5f1a2-b3d4-4e5f-8a9b-0c1d2e3f4a5b", "eksctl-prod-nodegroup-ng-gpu-NodeGroup-1A2B3C4D", "aks-gpupool-12345678-vmss"
	order := func(c *clustertest.Cluster, group string, from, to int, ago time.Duration) {
		reports(c, "cluster-autoscaler", "TriggeredScaleUp", fmt.Sprintf("pod triggered scale-up: [{%s %d->%d (max: 4)}]", group, from, to), ago, 0)
	}
	grown := func(name, group, node string, change func(*corev1.Node)) testCase {
		return testCase{name: name, code: answer.ScalingUp, exit: 3, first: "^2 nodes are coming: .*, and then it fits$", not: []string{"cannot be determined"}, build: func(c *clustertest.Cluster) {
			change(c.Node(node, 8))
			c.Runs("a", 8, node).Add(gangOf(2, 8))
			order(c, group, 1, 3, time.Minute)
		}}
	}
	labelled := func(pairs map[string]string) func(*corev1.Node) {
		return func(n *corev1.Node) { maps.Copy(n.Labels, pairs) }
	}
	check(t, []testCase{
		grown("an instance group of Google", google, "gke-prod-h100-1a2b3c4d-x7z9", labelled(nil)),
		grown("a scale set of Azure, by the name of the node", azure, azure+"000000", labelled(nil)),
		grown("a scale set of Azure, by the machine", "akswin", "akswin000000", func(n *corev1.Node) {
			n.Spec.ProviderID = "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/akswin/virtualMachines/0"
		}),
		grown("a managed group of Amazon", eks, "n1", labelled(map[string]string{"eks.amazonaws.com/nodegroup": "ng-gpu"})),
		grown("a group of eksctl", eksctl, "n1", labelled(map[string]string{"alpha.eksctl.io/nodegroup-name": "ng-gpu", "alpha.eksctl.io/cluster-name": "prod"})),
		{name: "another group whose name begins in the same way", code: answer.ScalingUp, exit: 3, wantText: []string{"cannot be determined: no node carries the name of group"}, build: func(c *clustertest.Cluster) {
			c.Node("gke-prod-h100-1a2b3c4d-b-x7z9", 8)
			c.Node("n1", 8).Labels["eks.amazonaws.com/nodegroup"] = "ng"
			c.Runs("a", 8, "n1", "gke-prod-h100-1a2b3c4d-b-x7z9").Add(gangOf(2, 8))
			order(c, google, 1, 2, time.Minute)
			order(c, eks, 1, 2, time.Minute)
		}},
		{name: "an order of one node, a refusal of another, and a job that ends", code: answer.NodesBusy, exit: 3, also: []answer.Code{answer.ScalingUp}, build: func(c *clustertest.Cluster) {
			const node = "gke-prod-h100-1a2b3c4d-x7z9"
			c.Node(node, 8)
			c.Runs("a", 8, node).Add(gangOf(2, 8))
			order(c, google, 1, 2, time.Minute)
			reports(c, "cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached", 20*time.Second, 1)
		}},
		{name: "an order whose nodes are not known is not the end of it", code: answer.TooBig, exit: 5, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(2, 8))
			order(c, google, 1, 2, time.Minute)
			reports(c, "cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached", 20*time.Second, 1)
		}},
		{name: "the nodes of a group have joined, and nothing shows what they will have", code: answer.ScalingUp, exit: 3, first: "^2 nodes are coming", wantText: []string{"cannot be determined: n1, n2 are of the group, and without devices as yet"}, never: []answer.Code{answer.ResourceNotOffered}, build: func(c *clustertest.Cluster) {
			for _, name := range []string{"n1", "n2"} {
				bare(c, name, time.Minute).Labels["eks.amazonaws.com/nodegroup"] = "ng-gpu"
			}
			c.Add(gangOf(2, 8))
			reports(c, "cluster-autoscaler", "TriggeredScaleUp", "pod triggered scale-up: [{"+eks+" 0->2 (max: 4)}]", 5*time.Minute, 0, 1)
		}},
		{name: "what was ordered long ago has not come", code: answer.TooBig, exit: 5, wantText: []string{"what cluster-autoscaler ordered 25m ago is not there: group eks-ng-gpu-.* has 1 node of 3"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Age = time.Hour }))
			label(c, "eks.amazonaws.com/nodegroup", "ng-gpu")
			order(c, eks, 1, 3, 25*time.Minute)
		}},
		{name: "what was ordered long ago has come", code: answer.NodesBusy, exit: 3, not: []string{"is not there"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Age = time.Hour }))
			label(c, "eks.amazonaws.com/nodegroup", "ng-gpu", "ng-gpu", "ng-gpu")
			order(c, eks, 1, 3, 25*time.Minute)
		}},
		{name: "its group is as large as it may be", code: answer.TooBig, exit: 6, wantText: []string{"node group eks-ng-gpu-.* was made as large as it may be, of 4 nodes, 25m ago: more come only when its maximum is raised"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Age = time.Hour }))
			order(c, eks, 3, 4, 25*time.Minute)
			reports(c, "cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached", 20*time.Second, 0)
		}},
		{name: "its group was as large as it may be, and has lost nodes since", code: answer.TooBig, exit: 6, not: []string{"as large as it may be"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Age = 5 * time.Hour }))
			label(c, "eks.amazonaws.com/nodegroup", "ng-gpu")
			order(c, eks, 3, 4, 3*time.Hour)
			reports(c, "cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 Insufficient nvidia.com/gpu", 20*time.Second, 0)
		}},
		{name: "its group was as large as it may be, and that was raised", code: answer.TooBig, exit: 6, wantText: []string{"node group eks-ng-gpu-.* may have 0 to 8 nodes"}, not: []string{"as large as it may be"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Age = time.Hour }))
			c.Deployment("kube-system", "cluster-autoscaler", "registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.0", "--nodes=0:8:"+eks)
			order(c, eks, 3, 4, 25*time.Minute)
			reports(c, "cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached", 20*time.Second, 0)
		}},
		{name: "its group was as large as it may be long ago, and is not now", code: answer.TooBig, exit: 6, not: []string{"as large as it may be"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Age = 5 * time.Hour }))
			order(c, eks, 3, 4, 3*time.Hour)
			reports(c, "cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 Insufficient nvidia.com/gpu", 20*time.Second, 0)
		}},
		{name: "the autoscaler tries again", code: answer.TooBig, exit: 5, wantText: []string{"in backoff after failed scale-up"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(2, 8))
			reports(c, "cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 in backoff after failed scale-up", 20*time.Second, 0, 1)
		}},
	})
}

// stockout adds a gang for a pool that has no node, of a kind of which there is none.
func stockout(c *clustertest.Cluster) {
	c.Nodes(1, 0).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Age = time.Hour }, spec(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"accelerator": "h100"} })))
	label(c, "acceleratar", "none")
}

// What an autoscaler would bring and cannot is not for the user to correct.
func TestAutoscalerCannot(t *testing.T) {
	check(t, []testCase{
		{name: "no capacity for the first nodes", code: answer.ResourceNotOffered, exit: 5, first: "^no node offers nvidia.com/gpu; there are: none; and what karpenter ordered 4m ago is not there: NodeClaim gpu-x7k2p does not exist any more: no capacity$", not: []string{"(?m)^what karpenter"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0).Add(gangOf(1, 8))
			claimed(c, "gpu-other", "", "", "8")
			reports(c, "karpenter", "Nominated", "Pod should schedule on: nodeclaim/gpu-x7k2p", 4*time.Minute, 0)
			c.Event("NodeClaim", "default", "gpu-x7k2p", "karpenter", "InsufficientCapacityError", "no capacity", 3*time.Minute)
		}},
		{name: "the cloud has none of the nodes of a pool", code: answer.ResourceNotOffered, exit: 5,
			first:    "; and what cluster-autoscaler ordered 24m ago is not there: group gke-h100 has 0 nodes of 4: scaling up in us-central1-a failed 12m ago: GCE out of resources$",
			wantText: []string{"and until they come: no node has the label accelerator=h100", "1 in backoff after failed scale-up"}, not: []string{"did you mean"}, never: []answer.Code{answer.SelectorNoMatch, answer.TooBig},
			build: func(c *clustertest.Cluster) {
				stockout(c)
				reports(c, "cluster-autoscaler", "TriggeredScaleUp", "pod triggered scale-up: [{https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a/instanceGroups/gke-h100 0->4 (max: 8)}]", 24*time.Minute, 0, 1)
				reports(c, "cluster-autoscaler", "FailedScaleUp", "Node scale up in zones us-central1-a associated with this pod failed: GCE out of resources. Pod is at risk of not being scheduled.", 12*time.Minute, 0, 1)
				reports(c, "cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 in backoff after failed scale-up", 2*time.Minute, 0, 1)
			}},
		{name: "the cloud has none, and only that is known", code: answer.ResourceNotOffered, exit: 5, first: "what cluster-autoscaler ordered is not there: scaling up in us-central1-a failed 12m ago: GCE quota exceeded$", never: []answer.Code{answer.SelectorNoMatch, answer.TooBig},
			build: func(c *clustertest.Cluster) {
				stockout(c)
				reports(c, "cluster-autoscaler", "FailedScaleUp", "Node scale up in zones us-central1-a associated with this pod failed: GCE quota exceeded. Pod is at risk of not being scheduled.", 12*time.Minute, 0, 1)
			}},
		{name: "the cloud had none before the last order", code: answer.ScalingUp, exit: 3, not: []string{"GCE"}, build: func(c *clustertest.Cluster) {
			stockout(c)
			reports(c, "cluster-autoscaler", "FailedScaleUp", "Node scale up in zones us-central1-a associated with this pod failed: GCE out of resources. Pod is at risk of not being scheduled.", 12*time.Minute, 0, 1)
			reports(c, "cluster-autoscaler", "TriggeredScaleUp", "pod triggered scale-up: [{gke-h100 0->4 (max: 8)}]", time.Minute, 0, 1)
		}},
		{name: "the cloud has too few more nodes", code: answer.TooBig, exit: 5, wantText: []string{"what cluster-autoscaler ordered 24m ago is not there: group gke-h100 has 1 node of 2: scaling up in us-central1-a failed"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Age = time.Hour }))
			label(c, "cloud.google.com/gke-nodepool", "gke-h100")
			reports(c, "cluster-autoscaler", "TriggeredScaleUp", "pod triggered scale-up: [{gke-h100 1->2 (max: 8)}]", 24*time.Minute, 1)
			reports(c, "cluster-autoscaler", "FailedScaleUp", "Node scale up in zones us-central1-a associated with this pod failed: GCE out of resources. Pod is at risk of not being scheduled.", 12*time.Minute, 1)
		}},
		{name: "no pool gives the label that it selects", code: answer.SelectorNoMatch, exit: 4, first: "^no node has the label nodegroup=p5$", also: []answer.Code{answer.ResourceNotOffered}, wantText: []string{"NodePool gpu gives its nodes team=ml, node.kubernetes.io/instance-type=p5.48xlarge.p5en.48xlarge"}, fix: "nodegroup=p5", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0).Add(gangOf(1, 8, spec(selects("nodegroup", "p5"))))
			c.Object(map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": "gpu"}, "spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "ml"}},
				"spec": map[string]any{"requirements": []any{map[string]any{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": []any{"p5.48xlarge", "p5en.48xlarge"}}}}}}, "status": map[string]any{}})
			reports(c, "karpenter", "FailedScheduling", `Failed to schedule pod, incompatible with nodepool "gpu", incompatible requirements, label "nodegroup" does not have known values`, 2*time.Minute, 0)
		}},
		{name: "its pool is not ready", code: answer.ResourceNotOffered, exit: 5, wantText: []string{"NodePool gpu is not ready, and gets no nodes: NodeClassNotReady", "kubectl describe nodepool gpu"}, build: func(c *clustertest.Cluster) {
			nodePool(c, "16", "0", "False")
			c.Nodes(1, 0).Add(gangOf(1, 8))
		}},
		{name: "a slip, whatever pools there are", code: answer.ResourceNotOffered, exit: 4, wantText: []string{"did you mean nvidia.com/gpu?"}, build: func(c *clustertest.Cluster) {
			nodePool(c, "16", "8", "False")
			c.Nodes(1, 8).Add(gangOf(1, 0, spec(requests("nvidia.com/gpus", "8"))))
		}},
		{name: "its pool is ready", code: answer.ResourceNotOffered, exit: 4, not: []string{"NodePool"}, build: func(c *clustertest.Cluster) {
			nodePool(c, "16", "16", "True")
			c.Nodes(1, 0).Add(gangOf(1, 8))
		}},
		{name: "its pool has all that it may", code: answer.NodesBusy, exit: 3, wantText: []string{"NodePool gpu has 16 of the 16 nvidia.com/gpu that it may have"}, build: func(c *clustertest.Cluster) {
			nodePool(c, "16", "16", "True")
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8))
			reports(c, "karpenter", "FailedScheduling", `Failed to schedule pod, all available instance types exceed limits for nodepool: "gpu"`, time.Minute, 0, 1)
		}},
		{name: "none of its nodes would have it", code: answer.ResourceNotOffered, exit: 5, wantText: []string{"2 Insufficient nvidia.com/gpu"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0).Add(gangOf(1, 8))
			reports(c, "cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: 2 Insufficient nvidia.com/gpu", 20*time.Second, 0)
		}},
		{name: "a slip, of which its nodes have none", code: answer.ResourceNotOffered, exit: 4, wantText: []string{"did you mean nvidia.com/gpu?"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(1, 0, spec(requests("nvidia.com/gpus", "8"))))
			reports(c, "cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: 2 Insufficient nvidia.com/gpus", 20*time.Second, 0)
		}},
		{name: "its nodes have a taint", code: answer.ResourceNotOffered, exit: 4, wantText: []string{"it would add nodes with taint nvidia.com/gpu=present, which members do not tolerate: with toleration nvidia.com/gpu it may add them"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0).Add(gangOf(1, 8))
			reports(c, "cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 node(s) had untolerated taint {nvidia.com/gpu: present}, 1 Insufficient nvidia.com/gpu", 20*time.Second, 0)
		}},
	})
}

// NVIDIA's operator cuts GPUs into slices as a label of the node has it.
func TestSlicing(t *testing.T) {
	cut := func(n *corev1.Node, layout, state string) {
		n.Labels["nvidia.com/mig.strategy"], n.Labels["nvidia.com/mig.config"], n.Labels["nvidia.com/mig.config.state"] = "mixed", layout, state
		n.Labels["nvidia.com/gpu.count"], n.Labels["nvidia.com/gpu.present"] = "8", "true"
	}
	small := func(c *clustertest.Cluster) { // offers other slices
		n := c.Node("n2", 0)
		n.Status.Allocatable["nvidia.com/mig-1g.10gb"], n.Status.Capacity["nvidia.com/mig-1g.10gb"] = clustertest.List("x", "56")["x"], clustertest.List("x", "56")["x"]
		cut(n, "all-1g.10gb", "success")
	}
	check(t, []testCase{
		{name: "a node is being cut into the slices", code: answer.ResourceNotOffered, exit: 3, first: "; the GPUs of n1 are being cut into it$", not: []string{"did you mean"}, build: func(c *clustertest.Cluster) {
			cut(c.Node("n1", 0), "all-3g.40gb", "pending")
			small(c)
			c.Add(gangOf(4, 0, requesting("nvidia.com/mig-3g.40gb", "1")))
		}},
		{name: "cutting a node into them has failed", code: answer.ResourceNotOffered, exit: 5, first: "; cutting the GPUs of n1 into it has failed$", build: func(c *clustertest.Cluster) {
			cut(c.Node("n1", 0), "all-3g.40gb", "failed")
			small(c)
			c.Add(gangOf(4, 0, requesting("nvidia.com/mig-3g.40gb", "1")))
		}},
		{name: "slices under the name of whole GPUs", code: answer.ResourceNotOffered, exit: 4, wantText: []string{"the slices of n1 are such, and they go by the name nvidia.com/gpu there"}, fix: "request nvidia.com/gpu instead of nvidia.com/mig-1g.10gb", build: func(c *clustertest.Cluster) {
			n := c.Node("n1", 56)
			n.Labels["nvidia.com/mig.strategy"], n.Labels["nvidia.com/gpu.product"] = "single", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"
			c.Add(gangOf(4, 0, requesting("nvidia.com/mig-1g.10gb", "1")))
		}},
		{name: "slices under the name of whole GPUs, which others have", code: answer.ResourceNotOffered, exit: 4, wantText: []string{"who requests it has to select the nodes by their label"}, build: func(c *clustertest.Cluster) {
			n := c.Nodes(1, 8).Node("n2", 56)
			n.Labels["nvidia.com/mig.strategy"], n.Labels["nvidia.com/mig.config"] = "single", "all-1g.10gb"
			c.Add(gangOf(4, 0, requesting("nvidia.com/mig-1g.10gb", "1")))
		}},
		{name: "nothing cuts a node into them", code: answer.ResourceNotOffered, exit: 5, first: "; the GPUs of n1 are to be cut into it, and no mig-manager runs there$", build: func(c *clustertest.Cluster) {
			cut(c.Node("n1", 0), "all-3g.40gb", "")
			small(c)
			c.Add(gangOf(4, 0, requesting("nvidia.com/mig-3g.40gb", "1")))
		}},
		{name: "a node is about to be cut into them", code: answer.ResourceNotOffered, exit: 3, first: "; the GPUs of n1 are being cut into it$", build: func(c *clustertest.Cluster) {
			cut(c.Node("n1", 0), "all-3g.40gb", "")
			c.Daemon("nvidia-mig-manager", "n1", "100m")
			small(c)
			c.Add(gangOf(4, 0, requesting("nvidia.com/mig-3g.40gb", "1")))
		}},
		{name: "slices of the same size, of GPUs with less memory", code: answer.ResourceNotOffered, exit: 4, fix: "request nvidia.com/mig-1g.10gb instead of nvidia.com/mig-1g.20gb", build: func(c *clustertest.Cluster) {
			small(c)
			c.Add(gangOf(4, 0, requesting("nvidia.com/mig-1g.20gb", "1")))
		}},
		{name: "no node is to be cut into them", code: answer.ResourceNotOffered, exit: 4, not: []string{"did you mean", "cut"}, build: func(c *clustertest.Cluster) {
			small(c)
			c.Add(gangOf(4, 0, requesting("nvidia.com/mig-3g.40gb", "1")))
		}},
		{name: "whole GPUs, and a node is not to have them", code: answer.TooBig, exit: 6, first: "8 GPUs on 1 node", wantText: []string{"the GPUs of n1 are to be cut .nvidia.com/mig.config=all-3g.40gb, state failed.: it offers no whole ones"}, never: []answer.Code{answer.NoDevicePlugin}, build: func(c *clustertest.Cluster) {
			cut(c.Node("n1", 0), "all-3g.40gb", "failed")
			c.Node("n2", 8)
			c.Add(gangOf(2, 8))
		}},
		{name: "another resource of the vendor is requested already", code: answer.ResourceNotOffered, exit: 4, first: "no node offers nvidia.com/gpumem", not: []string{"did you mean"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 1, requesting("nvidia.com/gpumem", "20000")))
		}},
		{name: "no node has a number of it, and a pod of the scheduler runs with it", code: answer.Fits, exit: 3, first: "not evaluated: how scheduler gang counts nvidia.com/gpumem, of which no node has a number", never: []answer.Code{answer.ResourceNotOffered}, build: func(c *clustertest.Cluster) {
			mem := requesting("nvidia.com/gpumem", "20000")
			c.Nodes(2, 8).Add(gangOf(1, 1, mem, func(g *clustertest.Gang) { g.Name, g.Nodes = "other", []string{"n1"} }))
			c.Add(gangOf(2, 1, mem, young))
		}},
	})
}
