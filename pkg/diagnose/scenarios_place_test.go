package diagnose

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

func spec(change func(*corev1.PodSpec)) func(*clustertest.Gang) {
	return func(g *clustertest.Gang) { g.Spec = change }
}

func mountsClaim(name string) func(*corev1.PodSpec) {
	return func(p *corev1.PodSpec) {
		p.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
	}
}

// claim adds a claim bound to a volume in a zone.
func claim(c *clustertest.Cluster, zone string) {
	c.Put(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data", UID: "pvc", Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "vol", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}})
	c.Put(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "vol"}, Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "team", Name: "data", UID: "pvc"},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}}}}}})
}

func label(c *clustertest.Cluster, key string, values ...string) {
	for i, v := range values {
		c.S.Nodes[i].Labels[key] = v
	}
}

func placeScenarios() []scenario {
	return []scenario{
		{name: "busy", code: answer.NodesBusy, exit: 3, offers: []answer.ActionKind{answer.Wait, answer.AddNodes}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(waiting(2, 8))
		}},
		{name: "busy, with a deadline", code: answer.NodesBusy, exit: 3, wantText: []string{"14:30", "activeDeadlineSeconds"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 2, GPUs: 8, Nodes: []string{"n1", "n2"}, Age: time.Hour, Job: set(int64(5400), "spec", "runPolicy", "activeDeadlineSeconds")}).Add(waiting(2, 8))
		}},
		{name: "busy, and earlier runs show how long", code: answer.NodesBusy, exit: 3, wantText: []string{"15:00", "median of 5 earlier runs of nightly"}, build: func(c *clustertest.Cluster) {
			for i := range 5 {
				c.Add(clustertest.Gang{Namespace: "research", Name: fmt.Sprintf("nightly-%d", i), Workers: 1, Missing: 1, NoGroup: true, Age: 24 * time.Hour, Job: func(job map[string]any) {
					set("2026-11-20T12:00:00Z", "status", "startTime")(job)
					set([]any{map[string]any{"type": "Succeeded", "status": "True", "lastTransitionTime": "2026-11-20T14:00:00Z"}}, "status", "conditions")(job)
				}})
			}
			c.Nodes(1, 8).Add(clustertest.Gang{Namespace: "research", Name: "nightly-5", Workers: 1, GPUs: 8, Nodes: []string{"n1"}, Age: time.Hour}).Add(waiting(1, 8))
		}},
		{name: "left over by a job that has ended", code: answer.NodesBusy, exit: 5, wantText: []string{"left over"}, offers: []answer.ActionKind{answer.Evict}, never: []answer.ActionKind{answer.Wait}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, GPUs: 8, Nodes: []string{"n1"},
				Job: set([]any{map[string]any{"type": "Succeeded", "status": "True"}}, "status", "conditions")}).Add(waiting(1, 8))
		}},
		{name: "busy, lower priority runs", code: answer.NodesBusy, exit: 3, offers: []answer.ActionKind{answer.Evict, answer.Wait}, build: func(c *clustertest.Cluster) {
			high := int32(1000)
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(with(waiting(2, 8), spec(func(p *corev1.PodSpec) { p.Priority = &high })))
		}},
		{name: "lower priority runs, and the scheduler lets it", code: answer.NodesBusy, exit: 3, offers: []answer.ActionKind{answer.Evict, answer.Wait},
			wantText: []string{"its scheduler may preempt TFJob research/a .priority 0 < 50., and has not yet", "take the room of TFJob research/a .priority 0 < 50."}, build: func(c *clustertest.Cluster) {
				high := int32(50)
				c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(with(waiting(2, 8), spec(func(p *corev1.PodSpec) { p.Priority = &high })))
			}},
		{name: "lower priority runs, and the gang never preempts", code: answer.NodesBusy, exit: 3, offers: []answer.ActionKind{answer.Wait}, never: []answer.ActionKind{answer.Evict},
			wantText: []string{"its preemptionPolicy is Never: it may not preempt TFJob research/a .priority 0 < 50."}, build: func(c *clustertest.Cluster) {
				high, never := int32(50), corev1.PreemptNever
				c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(with(waiting(2, 8), spec(func(p *corev1.PodSpec) { p.Priority, p.PreemptionPolicy = &high, &never })))
			}},
		{name: "services hold the room", code: answer.NodesBusy, exit: 5, offers: []answer.ActionKind{answer.Evict, answer.AddNodes}, never: []answer.ActionKind{answer.Wait}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Serves("web", 8, "n1", "n2").Add(waiting(2, 8))
		}},
		{name: "parts of a composite PodGroup", code: answer.CompositeBusy, exit: 3, wantText: []string{"gang .2 members. and decode .1 member.; they request 24 GPUs, and 16 of 24 are free"}, build: func(c *clustertest.Cluster) {
			part := func(g clustertest.Gang) clustertest.Gang {
				g.Dialect, g.Group = gang.Native, set("llama", "spec", "parentCompositePodGroupName")
				return g
			}
			decode := waiting(1, 8)
			decode.Name = "decode"
			c.Nodes(3, 8).Composite("llama", "", 2).Runs("a", 8, "n1").Add(part(waiting(2, 8))).Add(part(decode))
		}},
		{name: "fragmented", code: answer.Fragmented, exit: 3, offers: []answer.ActionKind{answer.Reshape, answer.Wait}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 4, "n1").Runs("b", 4, "n2").Add(waiting(1, 8))
		}},
		{name: "cpu short", code: answer.InsufficientCPU, exit: 3, offers: []answer.ActionKind{answer.Trim, answer.Wait}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, CPU: "90", Nodes: []string{"n1"}}).Add(waiting(1, 8))
		}},
		{name: "memory short", code: answer.InsufficientMemory, exit: 3, offers: []answer.ActionKind{answer.Trim}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, Memory: "740Gi", Nodes: []string{"n1"}}).Add(waiting(1, 8))
		}},
		{name: "storage short", code: answer.InsufficientStorage, exit: 3, build: func(c *clustertest.Cluster) {
			disk := func(q string) func(*corev1.PodSpec) {
				return func(p *corev1.PodSpec) {
					p.Containers[0].Resources.Requests["ephemeral-storage"] = resource.MustParse(q)
				}
			}
			c.Nodes(1, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, Nodes: []string{"n1"}, Spec: disk("900Gi")}).Add(with(waiting(1, 8), spec(disk("200Gi"))))
		}},
		{name: "pod slots short", code: answer.InsufficientPods, exit: 3, build: func(c *clustertest.Cluster) {
			c.Node("n1", 8).Status.Allocatable["pods"] = resource.MustParse("1")
			c.Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, Nodes: []string{"n1"}}).Add(waiting(1, 8))
		}},
		{name: "too many members", code: answer.TooBig, exit: 6, offers: []answer.ActionKind{answer.Fewer, answer.AddNodes}, never: []answer.ActionKind{answer.Wait}, build: func(c *clustertest.Cluster) { c.Nodes(2, 8).Add(waiting(3, 8)) }},
		{name: "no node", code: answer.TooBig, exit: 6, build: func(c *clustertest.Cluster) { c.Add(waiting(1, 1)) }},
		{name: "host port", code: answer.TooBig, exit: 6, offers: []answer.ActionKind{answer.Relax}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(with(waiting(2, 1), spec(func(p *corev1.PodSpec) {
				p.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 1, HostPort: 1}}
			})))
		}},
		{name: "resource with a typo", code: answer.ResourceNotOffered, exit: 4, offers: []answer.ActionKind{answer.Fix}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 0), spec(func(p *corev1.PodSpec) {
				r := p.Containers[0].Resources
				r.Requests["nvidia.com/gpus"], r.Limits["nvidia.com/gpus"] = resource.MustParse("8"), resource.MustParse("8")
			})))
		}},
		{name: "device plugin", code: answer.NoDevicePlugin, exit: 5, wantText: []string{"0/2"}, never: []answer.ActionKind{answer.AddNodes, answer.Fewer}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 0).Add(waiting(2, 8))
			label(c, "nvidia.com/gpu.present", "true", "true")
			c.Put(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "nvidia-device-plugin"}, Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{}},
				Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2}})
		}},
		{name: "label with a typo", code: answer.SelectorNoMatch, exit: 4, offers: []answer.ActionKind{answer.Relax}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), spec(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": "h1oo"} })))
			label(c, "class", "h100", "h100")
		}},
		{name: "claim without a class", code: answer.PVCUnbound, exit: 4, build: func(c *clustertest.Cluster) {
			fast := "fast"
			c.Put(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &fast}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}})
			c.Put(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "standard"}})
			c.Nodes(2, 8).Add(with(waiting(2, 8), spec(mountsClaim("data"))))
		}, wantText: []string{"fast", "standard"}},
		{name: "claim that does not exist", code: answer.PVCUnbound, exit: 4, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), spec(mountsClaim("data"))))
		}},
		{name: "node away", code: answer.NodeNotReady, exit: 5, offers: []answer.ActionKind{answer.Fix, answer.Fewer, answer.AddNodes}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(waiting(2, 8))
			clustertest.NotReady(c.S.Nodes[1], 26*time.Minute)
		}},
		{name: "nodes cordoned", code: answer.NodeNotReady, exit: 5, offers: []answer.ActionKind{answer.Uncordon}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(waiting(2, 8))
			c.S.Nodes[1].Spec.Unschedulable = true
		}},
		{name: "a cordoned node is an option", code: answer.NodesBusy, exit: 3, offers: []answer.ActionKind{answer.Wait, answer.Uncordon}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(waiting(1, 8))
			c.S.Nodes[1].Spec.Unschedulable = true
		}},
		{name: "sick device", code: answer.GPUUnhealthy, exit: 5, wantText: []string{"7 of 8"}, build: func(c *clustertest.Cluster) {
			c.Node("n1", 8).Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("7")
			c.Add(waiting(1, 8))
		}},
		{name: "stuck pod", code: answer.StuckTerminating, exit: 5, offers: []answer.ActionKind{answer.Fix}, never: []answer.ActionKind{answer.Wait}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, GPUs: 8, Nodes: []string{"n1"}, Pod: func(_ int, p *corev1.Pod) {
				at := clustertest.Ago(40 * time.Minute)
				p.DeletionTimestamp, p.Finalizers = &at, []string{"example.com/ckpt"}
			}}).Add(waiting(1, 8))
		}},
		{name: "stuck pod, and a job that runs", code: answer.StuckTerminating, exit: 5, also: []answer.Code{answer.NodesBusy}, offers: []answer.ActionKind{answer.AddNodes},
			wantText: []string{"clear a-worker-0, and then it waits: 8 of 16 GPUs free", "kubectl -n research patch pod a-worker-0"}, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, GPUs: 8, Nodes: []string{"n1"}, Pod: func(_ int, p *corev1.Pod) {
					at := clustertest.Ago(40 * time.Minute)
					p.DeletionTimestamp, p.Finalizers = &at, []string{"example.com/ckpt"}
				}}).Runs("b", 8, "n2").Add(waiting(2, 8))
			}},
		{name: "node cordoned, and a job that runs", code: answer.NodeNotReady, exit: 5, offers: []answer.ActionKind{answer.AddNodes}, wantText: []string{"uncordon n2, and then it waits: 8 of 16 GPUs free", "kubectl uncordon n2"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(waiting(2, 8))
			c.S.Nodes[1].Spec.Unschedulable = true
		}},
		{name: "node cordoned, and a service on it", code: answer.NodeNotReady, exit: 5, also: []answer.Code{answer.NodesBusy}, offers: []answer.ActionKind{answer.Evict},
			wantText: []string{"uncordon n1, and take the room of Deployment serving/web", "kubectl uncordon n1", "scale deployment/web --replicas=0"}, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Serves("web", 2, "n1").Add(waiting(2, 8))
				c.S.Nodes[0].Spec.Unschedulable = true
			}},
		{name: "a service, and a job that runs", code: answer.NodesBusy, exit: 5, wantText: []string{"take the room of Deployment serving/web, and then it waits: 8 of 16 GPUs free", "scale deployment/web --replicas=0"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Serves("web", 1, "n1").Runs("a", 8, "n2").Add(waiting(2, 8))
		}},
		{name: "a node that is down, and a pod that is stuck there", code: answer.NodeNotReady, exit: 5, also: []answer.Code{answer.StuckTerminating},
			wantText: []string{"repair n1, and bring back node n1", "or, once n1 is known to be off: kubectl taint nodes n1 node.kubernetes.io/out-of-service"}, notText: []string{"describe node n1\n +kubectl describe node n1"}, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, GPUs: 8, Nodes: []string{"n1"}, Pod: func(_ int, p *corev1.Pod) {
					at := clustertest.Ago(30 * time.Minute)
					p.DeletionTimestamp = &at
				}}).Add(waiting(2, 8))
				clustertest.NotReady(c.S.Nodes[0], 40*time.Minute)
			}},
		{name: "two things to repair", code: answer.NodeNotReady, exit: 5, also: []answer.Code{answer.NodesBusy}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Serves("web", 8, "n1").Add(waiting(2, 8))
			clustertest.NotReady(c.S.Nodes[1], time.Hour)
		}},
		{name: "victims are going", code: answer.VictimsTerminating, exit: 3, wantText: []string{"4m40s"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, GPUs: 8, Nodes: []string{"n1"}, Pod: func(_ int, p *corev1.Pod) {
				at := metav1.NewTime(clustertest.Now.Add(280 * time.Second))
				p.DeletionTimestamp = &at
			}}).Add(waiting(1, 8))
		}},
		{name: "nodes are coming", code: answer.ScalingUp, exit: 3, wantText: []string{"2 nodes"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(waiting(3, 8))
			label(c, "nodegroup", "ng")
			c.Event("Pod", "team", "gang-worker-0", "cluster-autoscaler", "TriggeredScaleUp", "pod triggered scale-up: [{ng 1->3 (max: 8)}]", time.Minute)
		}},
		{name: "the first nodes of a pool are coming", code: answer.ScalingUp, exit: 3, wantText: []string{"2 nodes", "until then: no node offers nvidia.com/gpu"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0).Add(with(waiting(2, 8), spec(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"pool": "gpu"} })))
			c.Event("Pod", "team", "gang-worker-0", "cluster-autoscaler", "TriggeredScaleUp", "pod triggered scale-up: [{ng 0->2 (max: 8)}]", time.Minute)
		}},
		{name: "a pool without nodes stays so", code: answer.ResourceNotOffered, exit: 4, wantText: []string{"max size reached"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 0).Add(waiting(2, 8))
			c.Event("Pod", "team", "gang-worker-0", "cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max size reached", time.Minute)
		}},
		{name: "a LeaderWorkerSet serves", code: answer.NodesBusy, exit: 5, wantText: []string{"never ends"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(clustertest.Gang{Namespace: "serving", Name: "vllm", Kind: "LeaderWorkerSet", Workers: 2, GPUs: 8, Nodes: []string{"n1", "n2"}}).Add(waiting(2, 8))
		}},
		{name: "one rack", code: answer.TopologyFragmented, exit: 3, offers: []answer.ActionKind{answer.Relax, answer.Wait, answer.Fewer}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("a", 8, "n1").Runs("b", 8, "n3").Add(with(waiting(2, 8), spec(func(p *corev1.PodSpec) { p.Affinity = clustertest.Together("gang", "rack") })))
			label(c, "rack", "r1", "r1", "r2", "r2")
		}},
		{name: "spread", code: answer.TopologySpread, exit: 3, offers: []answer.ActionKind{answer.Relax, answer.Wait}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("a", 8, "n1", "n2").Add(with(waiting(2, 8), spec(func(p *corev1.PodSpec) {
				p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule,
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"training.kubeflow.org/job-name": "gang"}}}}
			})))
			label(c, "zone", "z1", "z1", "z2", "z2")
		}},
		{name: "volume in another zone", code: answer.VolumeZone, exit: 3, offers: []answer.ActionKind{answer.Wait}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(with(waiting(1, 8), spec(mountsClaim("data"))))
			label(c, corev1.LabelTopologyZone, "z1", "z2")
			claim(c, "z1")
		}},
		{name: "devices of a driver", code: answer.DRAUnallocatable, exit: 3, offers: []answer.ActionKind{answer.Wait}, build: buildDRA},
	}
}

// buildDRA has one device of a driver, allocated to the claim of a running job, and a gang whose claim requests one too.
func buildDRA(c *clustertest.Cluster) {
	node := "n1"
	c.Nodes(1, 8)
	c.Put(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}})
	c.Put(&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice"}, Spec: resourcev1.ResourceSliceSpec{Driver: "gpu.example.com", NodeName: &node,
		Pool: resourcev1.ResourcePool{Name: "n1", ResourceSliceCount: 1}, Devices: []resourcev1.Device{{Name: "d0"}}}})
	claim := func(ns, name, pod string, allocated bool) {
		rc := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: "claim"}}
		rc.UID += metav1.ObjectMeta{UID: "claim"}.UID + "-" + "x"
		rc.Name, rc.Namespace = name, ns
		rc.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}
		if allocated {
			rc.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: "gpu.example.com", Pool: "n1", Device: "d0"}}}}
			rc.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod, UID: "Pod:" + metav1.ObjectMeta{UID: "research/a-worker-0"}.UID}}
		}
		c.Put(rc)
	}
	claim("research", "their-claim", "a-worker-0", true)
	claim("team", "mine", "", false)
	uses := func(name string) func(*corev1.PodSpec) {
		return func(p *corev1.PodSpec) {
			p.ResourceClaims = []corev1.PodResourceClaim{{Name: "r", ResourceClaimName: &name}}
		}
	}
	c.Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, Nodes: []string{"n1"}, Age: time.Hour, Spec: uses("their-claim")}).Add(with(waiting(1, 0), spec(uses("mine"))))
}
