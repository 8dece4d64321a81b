package diagnose

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// TestExperts has clusters in which several things are short or stand in the way, with the headline that whoever knows Kubernetes would write.
func TestExperts(t *testing.T) {
	for _, s := range expertScenarios() {
		t.Run(s.name, func(t *testing.T) { s.play(t) })
	}
}

// requests sets what the main container of a pod requests, and is limited to, of a resource.
func requests(name, q string) func(*corev1.PodSpec) {
	return func(p *corev1.PodSpec) {
		r := p.Containers[0].Resources
		r.Requests[corev1.ResourceName(name)], r.Limits[corev1.ResourceName(name)] = resource.MustParse(q), resource.MustParse(q)
	}
}

// provides has a node offer so much of a resource.
func provides(n *corev1.Node, name, q string) {
	n.Status.Allocatable[corev1.ResourceName(name)], n.Status.Capacity[corev1.ResourceName(name)] = resource.MustParse(q), resource.MustParse(q)
}

func port(p *corev1.PodSpec) {
	p.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8888, HostPort: 8888}}
}

func priority(n int32) func(*corev1.PodSpec) { return func(p *corev1.PodSpec) { p.Priority = &n } }

func inOneRack(p *corev1.PodSpec) {
	p.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: "rack", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"training.kubeflow.org/job-name": "gang"}}}}}}
}

func overZones(p *corev1.PodSpec) {
	p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"training.kubeflow.org/job-name": "gang"}}}}
}

// claimed publishes so many devices of class gpu on every node; held of those of the first are a job's. The gang claims so many for each member.
func claimed(c *clustertest.Cluster, devices, held, each int) func(*corev1.PodSpec) {
	request := func(n int) resourcev1.ResourceClaimSpec {
		return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
			{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(n)}}}}}
	}
	c.Put(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}})
	for _, n := range c.S.Nodes {
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Spec: resourcev1.ResourceSliceSpec{Driver: "gpu.example.com", NodeName: &n.Name, Pool: resourcev1.ResourcePool{Name: n.Name, ResourceSliceCount: 1}}}
		for i := range devices {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("d", i)})
		}
		c.Put(slice)
	}
	name := "a-worker-0-r"
	of := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: name, UID: types.UID(name)}, Spec: request(held)}
	of.Status.Allocation = &resourcev1.AllocationResult{}
	for i := range held {
		of.Status.Allocation.Devices.Results = append(of.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{Request: "r", Driver: "gpu.example.com", Pool: c.S.Nodes[0].Name, Device: fmt.Sprint("d", i)})
	}
	of.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "a-worker-0", UID: "Pod:research/a-worker-0"}}
	c.Put(of)
	c.Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, Nodes: []string{c.S.Nodes[0].Name}, Age: time.Hour, Spec: func(p *corev1.PodSpec) {
		p.ResourceClaims = []corev1.PodResourceClaim{{Name: "r", ResourceClaimName: &name}}
	}})
	c.Put(&resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "four"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: request(each)}})
	return func(p *corev1.PodSpec) {
		four := "four"
		p.ResourceClaims = []corev1.PodResourceClaim{{Name: "r", ResourceClaimTemplateName: &four}}
	}
}

func expertScenarios() []scenario {
	return []scenario{
		{name: "the memory of parameter servers, not the GPUs of workers", code: answer.InsufficientMemory, exit: 3, wantText: []string{"^WAITING .*memory is short.*each PS requests 400Gi"}, offers: []answer.ActionKind{answer.Wait}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(clustertest.Gang{Namespace: "research", Name: "etl", Workers: 2, Memory: "400Gi", Nodes: []string{"n1", "n2"}})
			c.Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.More = []clustertest.Role{{Name: "PS", Replicas: 2, Memory: "400Gi"}} }))
		}},
		{name: "network cards, not GPUs", code: answer.NodesBusy, exit: 3, wantText: []string{"^WAITING .*1 of 2 rdma/hca free", "TFJob research/a holds 1 rdma/hca on n1"}, build: func(c *clustertest.Cluster) {
			for _, n := range []string{"n1", "n2"} {
				provides(c.Node(n, 8), "rdma/hca", "1")
			}
			c.Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, Nodes: []string{"n1"}, Spec: requests("rdma/hca", "1")}).Add(with(waiting(2, 8), spec(requests("rdma/hca", "1"))))
		}},
		{name: "a taint that no quota lifts", code: answer.TooBig, exit: 6, also: []answer.Code{answer.NSQuota}, wantText: []string{"^BLOCKED .*taint dedicated=infra:NoSchedule"}, offers: []answer.ActionKind{}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			for _, n := range c.S.Nodes {
				n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "infra", Effect: corev1.TaintEffectNoSchedule}}
			}
			c.Put(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gpus"}, Spec: corev1.ResourceQuotaSpec{Hard: clustertest.List("requests.nvidia.com/gpu", "16")},
				Status: corev1.ResourceQuotaStatus{Hard: clustertest.List("requests.nvidia.com/gpu", "16"), Used: clustertest.List("requests.nvidia.com/gpu", "8")}})
			c.Add(with(waiting(2, 8), none))
		}},
		{name: "a rack each half full", code: answer.TopologyFragmented, exit: 3, wantText: []string{"^WAITING .*share one value of rack: r1 has room for 1, r2 for 1"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("a", 8, "n1").Runs("b", 8, "n3").Add(with(waiting(2, 8), spec(inOneRack)))
			label(c, "rack", "r1", "r1", "r2", "r2")
		}},
		{name: "data in the zone that is full", code: answer.VolumeZone, exit: 3, wantText: []string{"^WAITING .*the volume of claim data is in za .*16 GPUs in zb"}, build: func(c *clustertest.Cluster) {
			claim(c, "za")
			c.Nodes(4, 8).Runs("a", 8, "n1", "n2").Add(with(waiting(2, 8), spec(mountsClaim("data"))))
			label(c, corev1.LabelTopologyZone, "za", "za", "zb", "zb")
		}},
		{name: "a port of the host that a service has", code: answer.NodesBusy, exit: 5, wantText: []string{"^BLOCKED .*serving/web holds host port .* and never ends: a host port keeps it from the room"}, never: []answer.ActionKind{answer.Wait}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Serves("web", 0, "n1")
			port(&c.S.Pods[len(c.S.Pods)-1].Spec)
			c.Add(with(waiting(2, 8), spec(port)))
		}},
		{name: "a master and a worker, and who may be preempted", code: answer.NodesBusy, exit: 3, wantText: []string{"^WAITING .*needs 2 members with 8 GPUs each .1 master, 1 worker., 16 in all", "preempting TFJob research/low .priority 10 < 100. would not make room for all"}, notText: []string{"preempt[^\n]*high", "preempt[^\n]*cpus"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(clustertest.Gang{Namespace: "research", Name: "low", Workers: 1, GPUs: 8, Nodes: []string{"n1"}, Spec: priority(10)})
			c.Add(clustertest.Gang{Namespace: "research", Name: "high", Workers: 1, GPUs: 8, Nodes: []string{"n2"}, Spec: priority(1000)}).Runs("cpus", 0, "n1")
			c.Add(with(with(waiting(1, 8), spec(priority(100))), func(g *clustertest.Gang) {
				g.Kind, g.More = "PyTorchJob", []clustertest.Role{{Name: "Master", Replicas: 1, GPUs: 8}}
			}))
		}},
		{name: "huge pages of MPI workers", code: answer.TooBig, exit: 6, wantText: []string{"^BLOCKED .*hugepages-2Mi"}, never: []answer.ActionKind{answer.Wait}, offers: []answer.ActionKind{answer.Trim}, build: func(c *clustertest.Cluster) {
			provides(c.Node("n1", 8), "hugepages-2Mi", "8Gi")
			provides(c.Node("n2", 8), "hugepages-2Mi", "2Gi")
			c.Add(with(waiting(2, 8), func(g *clustertest.Gang) {
				g.Kind, g.More = "MPIJob", []clustertest.Role{{Name: "Launcher", Replicas: 1}}
				g.Spec = func(p *corev1.PodSpec) {
					if !p.Containers[0].Resources.Requests.Name("nvidia.com/gpu", resource.DecimalSI).IsZero() {
						requests("hugepages-2Mi", "4Gi")(p)
					}
				}
			}))
		}},
		{name: "a batch Job where DaemonSets have the pod slots", code: answer.TooBig, exit: 6, wantText: []string{"^BLOCKED .*pods? "}, build: func(c *clustertest.Cluster) {
			for _, n := range []string{"n1", "n2"} {
				provides(c.Node(n, 8), "pods", "2")
				c.Daemon("logs", n, "1")
			}
			c.Add(with(waiting(4, 2), func(g *clustertest.Gang) { g.Kind = "Job" }))
		}},
		{name: "one GPU of eight is sick", code: answer.GPUUnhealthy, exit: 5, wantText: []string{"^BLOCKED .*n1.*7 of 8 GPUs"}, never: []answer.ActionKind{answer.Wait}, offers: []answer.ActionKind{answer.Trim}, build: func(c *clustertest.Cluster) {
			c.Node("n1", 8).Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("7")
			c.Add(waiting(1, 8))
		}},
		{name: "one node is cordoned, the other is away", code: answer.NodeNotReady, exit: 5, also: []answer.Code{answer.NodeNotReady}, wantText: []string{"^BLOCKED .*n2 is not ready", "n1 is cordoned", "repair n2, and uncordon n1 "}, build: func(c *clustertest.Cluster) {
			c.Node("n1", 8).Spec.Unschedulable = true
			clustertest.NotReady(c.Node("n2", 8), 10*time.Minute)
			c.Add(waiting(2, 8))
		}},
		{name: "devices of a claim", code: answer.DRAUnallocatable, exit: 3, wantText: []string{"^WAITING .*2 workers claim 4 devices of class gpu each, 8 in all, and 6 of 8 are free; 1 of 2 members could have theirs", "TFJob research/a holds 2 devices on n1"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0)
			c.Add(with(waiting(2, 0), spec(claimed(c, 4, 2, 4))))
		}},
		{name: "a slice of a GPU that no node is cut into, in two roles", code: answer.ResourceNotOffered, exit: 4, wantText: []string{"^BLOCKED .*no node offers nvidia.com/mig-3g.40gb; there are: .*nvidia.com/mig-1g.10gb"}, notText: []string{"Also in the way"}, build: func(c *clustertest.Cluster) {
			for _, n := range []string{"n1", "n2"} {
				provides(c.Node(n, 0), "nvidia.com/mig-1g.10gb", "14")
			}
			c.Add(with(waiting(2, 0), func(g *clustertest.Gang) {
				g.More, g.Spec = []clustertest.Role{{Name: "Chief", Replicas: 1}}, requests("nvidia.com/mig-3g.40gb", "1")
			}))
		}},
		{name: "a spread over zones of which one is full", code: answer.TopologySpread, exit: 3, wantText: []string{"^WAITING .*topology.kubernetes.io/zone.*room for 3 in za, none in zb"}, offers: []answer.ActionKind{answer.Relax}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("a", 8, "n4").Add(with(waiting(3, 8), spec(overZones)))
			label(c, corev1.LabelTopologyZone, "za", "za", "za", "zb")
		}},
		{name: "the disk of the node, not GPUs", code: answer.InsufficientStorage, exit: 3, wantText: []string{"^WAITING .*ephemeral-storage is short.*each worker requests 900Gi"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(clustertest.Gang{Namespace: "research", Name: "etl", Workers: 1, Nodes: []string{"n1"}, Spec: requests("ephemeral-storage", "300Gi")})
			c.Add(with(waiting(2, 4), spec(requests("ephemeral-storage", "900Gi"))))
		}},
		{name: "large nodes are busy, small ones are free", code: answer.NodesBusy, exit: 3, wantText: []string{"^WAITING .*needs 2 workers with 8 GPUs each", "TFJob research/a holds 8 GPUs on n1"}, offers: []answer.ActionKind{answer.Trim, answer.Wait}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Node("s1", 4)
			c.Node("s2", 4)
			c.Runs("a", 8, "n1").Runs("b", 8, "n2").Add(waiting(2, 8))
		}},
		{name: "a toleration with a slip, and a chief that fits", code: answer.TooBig, exit: 6, wantText: []string{"^BLOCKED .*each worker requests 8 GPUs, and it does not tolerate taint dedicated=train:NoSchedule of n1, n2: no other node has any", "toleration dedicated=trian:NoSchedule does not match taint dedicated=train:NoSchedule"}, offers: []answer.ActionKind{answer.Relax}, notText: []string{"no node takes a chief"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Node("cpu", 0)
			for _, n := range c.S.Nodes[:2] {
				n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "train", Effect: corev1.TaintEffectNoSchedule}}
			}
			c.Add(with(with(waiting(2, 8), func(g *clustertest.Gang) { g.More = []clustertest.Role{{Name: "Chief", Replicas: 1}} }), spec(func(p *corev1.PodSpec) {
				p.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "trian", Effect: corev1.TaintEffectNoSchedule}}
			})))
		}},
		{name: "cpu on the nodes with GPUs, which the whole cluster has enough of", code: answer.InsufficientCPU, exit: 3, wantText: []string{"^WAITING .*cpu is short.*each worker requests 48"}, offers: []answer.ActionKind{answer.Trim}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Node("cpu1", 0)
			c.Node("cpu2", 0)
			c.Add(clustertest.Gang{Namespace: "research", Name: "etl", Workers: 2, CPU: "64", Nodes: []string{"n1", "n2"}})
			c.Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.CPU = "48" }))
		}},
		{name: "members on nodes of their own, of which there are too few", code: answer.TooBig, exit: 6, wantText: []string{"^BLOCKED .*3 .*anti-affinity|^BLOCKED .*anti-affinity.*3"}, offers: []answer.ActionKind{answer.Relax, answer.AddNodes, answer.Fewer}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(3, 1), spec(func(p *corev1.PodSpec) { p.Affinity = clustertest.Apart("gang") })))
		}},
		{name: "two of three shares of a quota, for a batch Job", code: answer.NSQuota, exit: 3, wantText: []string{"^WAITING .*quota q of namespace team has too little left: 8 of 16 GPUs used, 2 more members need 16"}, offers: []answer.ActionKind{answer.Quota}, build: func(c *clustertest.Cluster) {
			quota(c, "16", "8")
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "mine", Workers: 1, GPUs: 8, Nodes: []string{"n1"}})
			c.Add(with(with(waiting(2, 8), none), func(g *clustertest.Gang) { g.Kind = "Job" }))
		}},
		{name: "GPUs of workers and memory of parameter servers, together", code: answer.NodesBusy, exit: 3, also: []answer.Code{answer.InsufficientMemory}, wantText: []string{"^WAITING .*GPUs.*2 workers with 8 GPUs each.*; and memory is short"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(clustertest.Gang{Namespace: "research", Name: "etl", Workers: 2, Memory: "500Gi", Nodes: []string{"n1", "n2"}})
			c.Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.More = []clustertest.Role{{Name: "PS", Replicas: 2, Memory: "300Gi"}} }))
		}},
		{name: "one claim of a class that does not exist, in two roles", code: answer.PVCUnbound, exit: 4, wantText: []string{"^BLOCKED .*StorageClass \"fast\" of PersistentVolumeClaim data does not exist"}, notText: []string{"Also in the way"}, build: func(c *clustertest.Cluster) {
			fast := "fast"
			c.Put(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &fast}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}})
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) {
				g.More, g.Spec = []clustertest.Role{{Name: "Chief", Replicas: 1}}, mountsClaim("data")
			}))
		}},
		{name: "the tier that it selects is busy, another has room", code: answer.NodesBusy, exit: 3, wantText: []string{"^WAITING .*0 of 16 GPUs free on the 2 nodes with tier=h100", "tier=l40s"}, offers: []answer.ActionKind{answer.Relax, answer.Wait}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("a", 8, "n1", "n2").Add(with(waiting(2, 8), spec(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"tier": "h100"} })))
			label(c, "tier", "h100", "h100", "l40s", "l40s")
		}},
		{name: "a chief on a node that a DaemonSet fills, and workers that fit", code: answer.TooBig, exit: 6, wantText: []string{"^BLOCKED .*each chief requests 95"}, notText: []string{"^BLOCKED .*GPU"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8)
			for _, n := range []string{"n1", "n2", "n3"} {
				c.Daemon("agent", n, "2")
			}
			c.Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.More = []clustertest.Role{{Name: "Chief", Replicas: 1, CPU: "95"}} }))
		}},
		{name: "every node is cordoned, and a job of equal priority waits, too", code: answer.NodeNotReady, exit: 5, wantText: []string{"^BLOCKED .*n1, n2 are cordoned"}, offers: []answer.ActionKind{answer.Uncordon}, never: []answer.ActionKind{answer.Wait, answer.Evict}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(clustertest.Gang{Name: "other", Workers: 1, GPUs: 8})
			for _, n := range c.S.Nodes {
				n.Spec.Unschedulable = true
			}
			c.Add(waiting(2, 8))
		}},
		{name: "a queue that is full, and nodes that are busy", code: answer.QueueQuota, exit: 3, also: []answer.Code{answer.NodesBusy}, wantText: []string{"^WAITING .*queue q"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", map[string]any{"nvidia.com/gpu": "20"})
			c.Nodes(3, 8).Add(clustertest.Gang{Name: "mine", Workers: 1, GPUs: 8, Nodes: []string{"n3"}, Volcano: "q"}).Runs("a", 4, "n1").Runs("b", 4, "n2")
			c.Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Volcano, g.Missing = "q", 2 }))
		}},
	}
}
