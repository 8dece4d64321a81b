package stages_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// apartFrom is a required anti-affinity to pods with a label, by a label of nodes.
func apartFrom(label, value, key string) func(*corev1.PodSpec) {
	return func(p *corev1.PodSpec) {
		p.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: key, NamespaceSelector: &metav1.LabelSelector{}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: value}}},
		}}}
	}
}

// serves adds Deployment serving/web, with pods that are changed, one on each node.
func serves(c *clustertest.Cluster, gpus int64, change func(*corev1.Pod), nodes ...string) {
	before := len(c.S.Pods)
	c.Serves("web", gpus, nodes...)
	for _, p := range c.S.Pods[before:] {
		change(p)
	}
}

// A service keeps a gang out by what binds: the sentence names that, with its numbers, and what the service has of it on which nodes.
func TestServices(t *testing.T) {
	const jobName = "training.kubeflow.org/job-name"
	zones := func(c *clustertest.Cluster) { label(c, "zone", "z1", "z1", "z2", "z2") }
	web := func(p *corev1.Pod) { p.Labels["app"] = "web" }
	port := func(p *corev1.PodSpec) { p.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 2222}} }
	const kept = "pod anti-affinity keeps it from the room that there is: 0 of 2 members fit with it, all without; 16 GPUs are free$"
	check(t, []testCase{
		{name: "the gang keeps away from it", code: answer.NodesBusy, exit: 5, first: "^Deployment serving/web keeps workers off n1, n2 by pod anti-affinity and never ends: " + kept, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			serves(c, 0, web, "n1", "n2")
			c.Add(gangOf(2, 8, spec(apartFrom("app", "web", corev1.LabelHostname))))
		}},
		{name: "it keeps away from the gang", code: answer.NodesBusy, exit: 5, first: "^Deployment serving/web keeps workers off n1, n2 by pod anti-affinity and never ends: " + kept, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			serves(c, 0, func(p *corev1.Pod) { apartFrom(jobName, "gang", corev1.LabelHostname)(&p.Spec) }, "n1", "n2")
			c.Add(gangOf(2, 8))
		}},
		{name: "the gang keeps away from its zone, where it is on another node", code: answer.NodesBusy, exit: 5, first: "^Deployment serving/web keeps workers off zone=z1 .n1. by pod anti-affinity and never ends: .* 1 of 2 members fit",
			wantText: []string{"Deployment serving/web keeps workers off zone=z1 .n1. by pod anti-affinity, never ends"}, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Node("cpu1", 0)
				label(c, "zone", "z1", "z2", "z1")
				serves(c, 0, web, "cpu1")
				c.Add(gangOf(2, 8, spec(apartFrom("app", "web", "zone"))))
			}},
		{name: "the gang keeps away from it, and it is on a node that is too small, too", code: answer.NodesBusy, exit: 5, first: "^Deployment serving/web keeps workers off n1, n2 by pod anti-affinity and never ends: " + kept, not: []string{"off cpu1"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Node("cpu1", 0)
			serves(c, 0, web, "n1", "n2", "cpu1")
			c.Add(gangOf(2, 8, spec(apartFrom("app", "web", corev1.LabelHostname))))
		}},
		{name: "members are apart, and it has one of their nodes", code: answer.NodesBusy, exit: 5, first: "^Deployment serving/web holds 8 GPUs on n1 and never ends: needs 2 workers with 2 GPUs each, each on a node of its own by pod anti-affinity; 8 GPUs are free but as 8$", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Serves("web", 8, "n1").Add(gangOf(2, 2, spec(func(p *corev1.PodSpec) { p.Affinity = clustertest.Apart("gang") })))
		}},
		{name: "one zone of a spread", code: answer.NodesBusy, exit: 5, first: "^Deployment serving/web holds 16 GPUs on n1, n2 and never ends: the spread over zone .maxSkew 1. .room for none in z1, 2 in z2. keeps it", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Serves("web", 8, "n1", "n2").Add(gangOf(2, 8, spec(func(p *corev1.PodSpec) {
				p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule,
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{jobName: "gang"}}}}
			})))
			zones(c)
		}},
		{name: "a part of each zone", code: answer.NodesBusy, exit: 5, first: "^Deployment serving/web holds 16 GPUs on n1, n3 and never ends: all 2 members must share one value of zone: z1 has room for 1, z2 for 1$", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Serves("web", 8, "n1", "n3").Add(gangOf(2, 8, spec(func(p *corev1.PodSpec) { p.Affinity = clustertest.Together("gang", "zone") })))
			zones(c)
		}},
		{name: "the zone of the volume", code: answer.NodesBusy, exit: 5, first: "^Deployment serving/web holds 16 GPUs on n1, n2 and never ends: the volume of claim data is in z1 .*, and what is free is elsewhere: 16 GPUs in z2$", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Serves("web", 8, "n1", "n2").Add(gangOf(1, 8, mounts("data")))
			label(c, corev1.LabelTopologyZone, "z1", "z1", "z2", "z2")
			boundClaim(c, "z1", corev1.ReadWriteMany)
		}},
		{name: "the half of each node", code: answer.NodesBusy, exit: 5, first: `^Deployment serving/web holds 8 GPUs on n1, n2 and never ends: needs 1 worker with 8 GPUs on one node; 8 GPUs are free but as 4\+4$`, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Serves("web", 4, "n1", "n2").Add(gangOf(1, 8))
		}},
		{name: "a host port", code: answer.NodesBusy, exit: 5, first: "^Deployment serving/web holds host port 2222 on n1, n2 and never ends: a host port keeps it from the room that there is: 0 of 2 members fit with it", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			serves(c, 0, func(p *corev1.Pod) { port(&p.Spec) }, "n1", "n2")
			c.Add(gangOf(2, 8, spec(port)))
		}},
		{name: "devices of claims", code: answer.NodesBusy, exit: 5, first: "^Deployment serving/web holds 1 device on n1 and never ends: 2 workers claim 1 device of class gpu each, 2 in all, and 1 of 2 is free", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			devices(c, 1)
			template(c, "one", "gpu")
			serves(c, 0, func(p *corev1.Pod) {
				name := p.Name + "-r"
				p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "r", ResourceClaimName: &name}}
			}, "n1")
			taken(c, "n1", "d0", "web-abc-0")
			c.S.ResourceClaims[0].Namespace, c.S.ResourceClaims[0].Status.ReservedFor[0].UID = "serving", "Pod:serving/web-abc-0"
			c.Add(gangOf(2, 0, claims("one")))
		}},
		{name: "on a node that is cordoned as well", code: answer.NodeNotReady, exit: 5, first: "n1 is cordoned", wantText: []string{"NODES_BUSY Deployment serving/web holds 8 GPUs on n1 and never ends: 0 of 8 GPUs free on the 1 node that gang may use"}, not: []string{"the 0 nodes"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Serves("web", 8, "n1").Add(gangOf(1, 8))
			c.S.Nodes[0].Spec.Unschedulable = true
		}},
		{name: "what it has is not all that is short now", code: answer.NodesBusy, exit: 5, first: "^Deployment serving/web holds 92 cpu on n1 and never ends: cpu is short: each worker requests 8", also: []answer.Code{answer.NodesBusy},
			wantText: []string{"without Deployment serving/web it would start when jobs end"}, build: func(c *clustertest.Cluster) {
				c.Nodes(1, 8)
				c.ServesWith("web", 0, "92", "n1").Add(using("a", []string{"n1"}, "cpu", "1", "nvidia.com/gpu", "8")).Add(gangOf(1, 8))
			}},
	})
}
