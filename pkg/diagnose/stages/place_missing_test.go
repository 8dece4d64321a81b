package stages_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// requesting lets each member request some of a device.
func requesting(name corev1.ResourceName, n string) func(*clustertest.Gang) {
	return spec(func(p *corev1.PodSpec) {
		r := p.Containers[0].Resources
		r.Requests[name], r.Limits[name] = resource.MustParse(n), resource.MustParse(n)
	})
}

// offers gives every node some of a device.
func offers(c *clustertest.Cluster, name corev1.ResourceName, n string) {
	for _, node := range c.S.Nodes {
		node.Status.Allocatable[name], node.Status.Capacity[name] = resource.MustParse(n), resource.MustParse(n)
	}
}

func label(c *clustertest.Cluster, key string, values ...string) {
	for i, v := range values {
		c.S.Nodes[i].Labels[key] = v
	}
}

func plugin(c *clustertest.Cluster, name string, ready, desired int32) {
	c.Put(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}, Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"ds": name}}},
		Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: desired, NumberReady: ready}})
}

// pluginPod is the pod of a plugin on a node, whose container is restarted all the time unless it is changed.
func pluginPod(c *clustertest.Cluster, plugin, node string) *corev1.Pod {
	p := c.Daemon(plugin, node, "100m")
	p.Labels = map[string]string{"ds": plugin}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: plugin, RestartCount: 88, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}}}}
	return p
}

// unplugged is a gang of two, a node with GPUs, and one that advertises none.
func unplugged(c *clustertest.Cluster) {
	plugin(c, "nvidia-device-plugin", 1, 2)
	c.Node("n1", 8)
	c.Node("n2", 0)
	label(c, "nvidia.com/gpu.count", "8", "8")
	c.Add(gangOf(2, 8))
}

func TestDevices(t *testing.T) {
	check(t, []testCase{
		{name: "a slip", code: answer.ResourceNotOffered, exit: 4, first: `no node offers nvidia.com/gpus; there are: nvidia.com/gpu .2 nodes.`, wantText: []string{"did you mean nvidia.com/gpu"}, fix: "request nvidia.com/gpu", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 0, requesting("nvidia.com/gpus", "8")))
		}},
		{name: "another vendor, whose plugin is not there", code: answer.ResourceNotOffered, exit: 4, first: "no node offers amd.com/gpu", never: []answer.Code{answer.NoDevicePlugin}, not: []string{"did you mean"}, build: func(c *clustertest.Cluster) {
			plugin(c, "nvidia-device-plugin", 2, 2)
			c.Nodes(2, 8).Add(gangOf(2, 0, requesting("amd.com/gpu", "8")))
		}},
		{name: "whole devices where they are cut", code: answer.ResourceNotOffered, exit: 4, first: "no node offers nvidia.com/gpu.*nvidia.com/mig-3g.40gb", never: []answer.Code{answer.NoDevicePlugin}, build: func(c *clustertest.Cluster) {
			plugin(c, "nvidia-device-plugin", 2, 2)
			c.Nodes(2, 0)
			offers(c, "nvidia.com/mig-3g.40gb", "14")
			label(c, "nvidia.com/gpu.present", "true", "true")
			c.Add(gangOf(2, 8))
		}},
		{name: "a cut that no node has", code: answer.ResourceNotOffered, exit: 4, first: "nvidia.com/mig-1g.10gb.*mig-3g.40gb", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			offers(c, "nvidia.com/mig-3g.40gb", "14")
			c.Add(gangOf(2, 0, requesting("nvidia.com/mig-1g.10gb", "1")))
		}},
		{name: "cut devices fit", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			offers(c, "nvidia.com/mig-3g.40gb", "14")
			c.Add(gangOf(2, 0, requesting("nvidia.com/mig-3g.40gb", "14"), young))
		}},
		{name: "the plugin is down", code: answer.NoDevicePlugin, exit: 5, first: "2 nodes .n1, n2. look like they have GPUs and advertise none", wantText: []string{"device plugin kube-system/nvidia-device-plugin: 0/2 ready"}, build: func(c *clustertest.Cluster) {
			plugin(c, "nvidia-device-plugin", 0, 2)
			c.Nodes(2, 0).Add(gangOf(2, 8))
			label(c, "nvidia.com/gpu.present", "true", "true")
		}},
		{name: "the plugin went down: the nodes remember what they have", code: answer.NoDevicePlugin, exit: 5, first: "advertise none", wantText: []string{"0/2 ready"}, build: func(c *clustertest.Cluster) {
			plugin(c, "nvidia-device-plugin", 0, 2)
			c.Nodes(2, 8).Add(gangOf(2, 8))
			for _, n := range c.S.Nodes {
				n.Status.Allocatable = n.Status.Allocatable.DeepCopy()
				n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("0")
			}
		}},
		{name: "the plugin is down on one of two nodes", code: answer.NoDevicePlugin, exit: 5, first: "n2", wantText: []string{"1/2 ready"}, build: func(c *clustertest.Cluster) {
			plugin(c, "nvidia-device-plugin", 1, 2)
			c.Node("n1", 8)
			c.Node("n2", 0)
			label(c, "nvidia.com/gpu.count", "8", "8")
			c.Add(gangOf(2, 8))
		}},
		{name: "the plugin crashes on one of two nodes", code: answer.NoDevicePlugin, exit: 5, first: "1 node .n2. looks like it has GPUs", not: []string{"logs daemonset", "on n1"},
			wantText: []string{"pod nvidia-device-plugin-n2 on n2: CrashLoopBackOff, 88 restarts; last exit code 1: Error", "kubectl -n kube-system logs nvidia-device-plugin-n2 --previous --tail=50"}, build: func(c *clustertest.Cluster) {
				unplugged(c)
				up := pluginPod(c, "nvidia-device-plugin", "n1").Status.ContainerStatuses
				up[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
				pluginPod(c, "nvidia-device-plugin", "n2")
			}},
		{name: "the pod of the plugin for one of two nodes finds no room there", code: answer.NoDevicePlugin, exit: 5, first: "1 node .n2. looks like it has GPUs",
			wantText: []string{"pod nvidia-device-plugin-n2 on n2: Pending: 0/2 nodes are available: 1 Too many pods", "kubectl -n kube-system describe pod nvidia-device-plugin-n2"}, not: []string{"has no pod on"}, build: func(c *clustertest.Cluster) {
				unplugged(c)
				p := pluginPod(c, "nvidia-device-plugin", "n2")
				p.Spec.NodeName = ""
				p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
					{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n2"}}}}}}}}
				p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/2 nodes are available: 1 Too many pods"}}}
			}},
		{name: "the plugin has no pod on one of two nodes", code: answer.NoDevicePlugin, exit: 5, first: "1 node .n2. looks like it has GPUs", wantText: []string{"it has no pod on n2: see its node selector"}, build: func(c *clustertest.Cluster) {
			unplugged(c)
			pluginPod(c, "nvidia-device-plugin", "n1").Status.ContainerStatuses = nil
		}},
		{name: "the plugin is down on one of two nodes, and it would not help", code: answer.TooBig, exit: 6, never: []answer.Code{answer.NoDevicePlugin}, build: func(c *clustertest.Cluster) {
			plugin(c, "nvidia-device-plugin", 1, 2)
			c.Node("n1", 8)
			c.Node("n2", 0)
			label(c, "nvidia.com/gpu.count", "8", "8")
			c.Add(gangOf(3, 8))
		}},
		{name: "a plugin without nodes of its kind", code: answer.ResourceNotOffered, exit: 4, never: []answer.Code{answer.NoDevicePlugin}, build: func(c *clustertest.Cluster) {
			plugin(c, "nvidia-device-plugin", 0, 0)
			c.Nodes(2, 0).Add(gangOf(2, 8))
		}},
		{name: "labels only", code: answer.NoDevicePlugin, exit: 5, wantText: []string{"no DaemonSet of a device plugin"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0).Add(gangOf(2, 8))
			label(c, "nvidia.com/gpu.count", "8", "8")
		}},
		{name: "the plugin of another maker's devices, which no node is for", code: answer.NoDevicePlugin, exit: 5, first: "2 nodes .n1, n2. look like they have aws.amazon.com/neuron and advertise none",
			wantText: []string{"kube-system/neuron-device-plugin-daemonset wants pods on 0 nodes"}, build: func(c *clustertest.Cluster) {
				plugin(c, "neuron-device-plugin-daemonset", 0, 0)
				c.Nodes(2, 0).Add(gangOf(2, 0, requesting("aws.amazon.com/neuron", "16")))
				label(c, corev1.LabelInstanceTypeStable, "trn1.32xlarge", "trn1.32xlarge")
			}},
		{name: "a node without what those of its kind have beside their GPUs", code: answer.NoDevicePlugin, exit: 5, first: "1 node .n2. looks like it has rdma/hca and advertises none", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			label(c, corev1.LabelInstanceTypeStable, "h100", "h100")
			n := c.S.Nodes[0]
			n.Status.Allocatable = n.Status.Allocatable.DeepCopy()
			n.Status.Allocatable["rdma/hca"] = resource.MustParse("8")
			n.Status.Capacity = n.Status.Allocatable
			c.Add(gangOf(2, 8, spec(requests("rdma/hca", "1"))))
		}},
		{name: "no sign of devices at all", code: answer.ResourceNotOffered, exit: 4, first: "there are: none", build: func(c *clustertest.Cluster) { c.Nodes(2, 0).Add(gangOf(2, 8)) }},
		{name: "one of two roles", code: answer.ResourceNotOffered, exit: 4, wantText: []string{"rdma/hca"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(1, 8, func(g *clustertest.Gang) {
				g.More = []clustertest.Role{{Name: "PS", Replicas: 1, Spec: func(p *corev1.PodSpec) {
					r := p.Containers[0].Resources
					r.Requests["rdma/hca"], r.Limits["rdma/hca"] = resource.MustParse("1"), resource.MustParse("1")
				}}}
			}))
		}},
	})
}

// What a webhook adds to pods is nothing that the job requests.
func TestResourceAdded(t *testing.T) {
	check(t, []testCase{
		{name: "by a webhook", code: answer.ResourceNotOffered, exit: 4, wantText: []string{"the job does not request it: its operator, or a webhook, adds it to the pods"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, pods(func(_ int, p *corev1.Pod) { requests("networking.gke.io.networks/rdma-0", "1")(&p.Spec) })))
		}},
		{name: "by the job", code: answer.ResourceNotOffered, exit: 4, not: []string{"webhook"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, spec(requests("networking.gke.io.networks/rdma-0", "1"))))
		}},
	})
}
