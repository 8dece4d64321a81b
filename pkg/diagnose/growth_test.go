package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/internal/clustertest"
	kueuedialect "github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// crowded is a cluster with n of something, in which 8 gangs wait for the same reason, after what was prepared for each.
func crowded(n int, cluster func(c *clustertest.Cluster, n int), each func(c *clustertest.Cluster, g *clustertest.Gang)) *clustertest.Cluster {
	c := clustertest.New()
	cluster(c, n)
	for i := range 8 {
		g := waiting(2, 8)
		g.Name = fmt.Sprintf("gang%d", i)
		each(c, &g)
		c.Add(g)
	}
	return c
}

// filled are nodes with a job each, which runs.
func filled(c *clustertest.Cluster, n int) {
	for i := range n {
		c.Runs(fmt.Sprintf("big%d", i), 1, c.Node(fmt.Sprintf("n%d", i), 8).Name)
	}
}

// silent makes a node one whose kubelet has not reported for long.
func silent(n *corev1.Node) {
	clustertest.NotReady(n, 10*time.Minute)
	n.Status.Conditions[0].Status = corev1.ConditionUnknown
}

// losing are the first members of a gang on their way out, on nodes that were made for them.
func losing(members int, node func(*corev1.Node)) func(c *clustertest.Cluster, g *clustertest.Gang) {
	return func(c *clustertest.Cluster, g *clustertest.Gang) {
		for i := range g.Workers {
			n := c.Node(fmt.Sprintf("%s-%d", g.Name, i), 8)
			if i < members {
				node(n)
			}
			g.Nodes = append(g.Nodes, n.Name)
		}
		g.Pod = func(i int, p *corev1.Pod) {
			if at := clustertest.Ago(-20 * time.Second); i < members {
				p.DeletionTimestamp = &at
			}
		}
	}
}

// bare leaves the pods of the gangs of a cluster and their PodGroups without a job.
func bare(c *clustertest.Cluster) *clustertest.Cluster {
	for kind, list := range c.S.Custom {
		c.S.Custom[kind] = slices.DeleteFunc(list, func(u *unstructured.Unstructured) bool {
			u.SetOwnerReferences(nil)
			return kind.Kind == "TFJob" && u.GetNamespace() == "team"
		})
	}
	for _, p := range c.S.Pods {
		if p.Namespace == "team" {
			p.OwnerReferences = nil
		}
	}
	return c
}

// device is a claim of one device of class gpu.
func device() resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
		{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}},
	}}}
}

// allClaimed are nodes with a device each, which a claim has.
func allClaimed(c *clustertest.Cluster, n int) {
	c.Put(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}})
	c.Put(&resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "one"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: device()}})
	for i := range n {
		node := c.Node(fmt.Sprintf("n%d", i), 0).Name
		c.Put(&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourcev1.ResourceSliceSpec{
			Driver: "gpu.example.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}, Devices: []resourcev1.Device{{Name: "d"}},
		}})
		c.Runs(fmt.Sprintf("big%d", i), 0, node)
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: node, UID: types.UID(node)}, Spec: device()}
		claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: "gpu.example.com", Pool: node, Device: "d"}}}}
		claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: fmt.Sprintf("big%d-worker-0", i), UID: types.UID(fmt.Sprintf("Pod:research/big%d-worker-0", i))}}
		c.Put(claim)
	}
}

// disks are filled nodes with a local volume each.
func disks(c *clustertest.Cluster, n int) {
	filled(c, n)
	later := storagev1.VolumeBindingWaitForFirstConsumer
	c.Put(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &later})
	for i := range n {
		c.Put(volume(fmt.Sprintf("disk%d", i), "local", corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/disk"}}, &corev1.NodeSelectorRequirement{
			Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{fmt.Sprintf("n%d", i)},
		}))
	}
}

func volume(name, class string, source corev1.PersistentVolumeSource, at *corev1.NodeSelectorRequirement) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		StorageClassName: class, PersistentVolumeSource: source, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: clustertest.List("storage", "10Gi"),
	}}
	if at != nil {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{*at}}}}}
	}
	pv.Status.Phase = corev1.VolumeAvailable
	return pv
}

// attachable are filled nodes that count the volumes of a CSI driver.
func attachable(c *clustertest.Cluster, n int) {
	filled(c, n)
	most := int32(4)
	for _, node := range c.S.Nodes {
		c.Put(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node.Name}, Spec: storagev1.CSINodeSpec{
			Drivers: []storagev1.CSINodeDriver{{Name: "csi.example.com", NodeID: node.Name, Allocatable: &storagev1.VolumeNodeResources{Count: &most}}},
		}})
	}
}

// mounting has the members of a gang mount a claim of their own gang.
func mounting(c *clustertest.Cluster, g *clustertest.Gang, class, pv string) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data-" + g.Name, UID: types.UID(g.Name), CreationTimestamp: clustertest.Ago(time.Hour)}}
	claim.Spec.AccessModes, claim.Spec.StorageClassName, claim.Spec.VolumeName = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, &class, pv
	claim.Spec.Resources.Requests, claim.Status.Phase = clustertest.List("storage", "1Gi"), corev1.ClaimPending
	if pv != "" {
		claim.Status.Phase, claim.Annotations = corev1.ClaimBound, map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	}
	c.Put(claim)
	g.Spec = func(p *corev1.PodSpec) {
		p.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}}}
	}
}

func growing() map[string]func(n int) *clustertest.Cluster {
	plain := func(*clustertest.Cluster, *clustertest.Gang) {}
	nodes := func(change func(n *corev1.Node)) func(n int) *clustertest.Cluster {
		return func(n int) *clustertest.Cluster {
			c := crowded(n, filled, plain)
			for _, node := range c.S.Nodes {
				change(node)
			}
			return c
		}
	}
	return map[string]func(n int) *clustertest.Cluster{
		"cordoned nodes": nodes(func(n *corev1.Node) { n.Spec.Unschedulable = true }),
		"nodes that are not ready": nodes(func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
		}),
		"values of a label": func(n int) *clustertest.Cluster {
			c := crowded(n, filled, func(_ *clustertest.Cluster, g *clustertest.Gang) {
				g.Spec = func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"pool": "none"} }
			})
			for i, node := range c.S.Nodes {
				node.Labels["pool"] = fmt.Sprintf("p%d", i)
			}
			return c
		},
		"users of a quota": func(n int) *clustertest.Cluster {
			return crowded(n, func(c *clustertest.Cluster, n int) {
				list := corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse(fmt.Sprint(n))}
				c.Put(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: list}, Status: corev1.ResourceQuotaStatus{Hard: list, Used: list}})
				for i := range n {
					c.Add(clustertest.Gang{Name: fmt.Sprintf("run%d", i), Workers: 1, GPUs: 1, Nodes: []string{c.Node(fmt.Sprintf("n%d", i), 8).Name}, Age: time.Hour})
				}
			}, func(_ *clustertest.Cluster, g *clustertest.Gang) { g.Missing = 2 })
		},
		"Workloads of Kueue": func(n int) *clustertest.Cluster {
			queued := func(c *clustertest.Cluster, g *clustertest.Gang) {
				g.NoGroup, g.Job = true, func(o map[string]any) {
					o["metadata"].(map[string]any)["labels"] = map[string]any{kueuedialect.QueueLabel: "lq"}
				}
			}
			return crowded(n, func(c *clustertest.Cluster, n int) {
				c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "f", Resource: "nvidia.com/gpu", Nominal: fmt.Sprint(n + 8)})
				c.LocalQueue("lq", "cq")
				c.Flavor("f", "", "")
				for i := range n {
					g := clustertest.Gang{Name: fmt.Sprintf("run%d", i), Workers: 1, GPUs: 1, Nodes: []string{c.Node(fmt.Sprintf("n%d", i), 8).Name}, Age: time.Hour}
					queued(c, &g)
					c.Add(g)
					clustertest.Admit(c.Workload(g.Name, "lq", time.Hour), "cq", "f", "1")
				}
			}, func(c *clustertest.Cluster, g *clustertest.Gang) {
				queued(c, g)
				g.Missing = 2
			})
		},
		"nodes of gangs that went down": func(n int) *clustertest.Cluster { return crowded(n, filled, losing(1, silent)) },
		"nodes of all members that went down": func(n int) *clustertest.Cluster {
			return crowded(n, filled, losing(2, silent))
		},
		"nodes that went down, with all of their jobs": func(n int) *clustertest.Cluster {
			c := crowded(n, filled, losing(1, silent))
			for _, node := range c.S.Nodes[:n/2] {
				silent(node)
				node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}}
			}
			return c
		},
		"members that leave": func(n int) *clustertest.Cluster {
			return crowded(n, filled, func(c *clustertest.Cluster, g *clustertest.Gang) {
				g.Workers = 3
				losing(1, func(n *corev1.Node) { n.Spec.Unschedulable = true })(c, g)
			})
		},
		"members that have a node": func(n int) *clustertest.Cluster {
			return crowded(n, filled, func(c *clustertest.Cluster, g *clustertest.Gang) {
				g.Nodes = []string{c.Node(g.Name, 8).Name}
			})
		},
		"members down of gangs that run": func(n int) *clustertest.Cluster {
			return crowded(n, filled, func(c *clustertest.Cluster, g *clustertest.Gang) {
				g.Workers, g.Min = 3, 2
				for i := range g.Min {
					g.Nodes = append(g.Nodes, c.Node(fmt.Sprintf("%s-%d", g.Name, i), 8).Name)
				}
			})
		},
		"gangs that are partly placed": func(n int) *clustertest.Cluster {
			return crowded(n, func(c *clustertest.Cluster, n int) {
				filled(c, n)
				for i := range n / 10 {
					c.Add(clustertest.Gang{Name: fmt.Sprintf("part%d", i), Workers: 2, GPUs: 8, Nodes: []string{c.Node(fmt.Sprintf("p%d", i), 8).Name}})
				}
			}, func(c *clustertest.Cluster, g *clustertest.Gang) {
				g.Workers, g.Nodes = 100, []string{c.Node(g.Name, 8).Name}
			})
		},
		"volumes that every node reaches": func(n int) *clustertest.Cluster {
			return crowded(n, filled, func(c *clustertest.Cluster, g *clustertest.Gang) {
				pv := "pv-" + g.Name
				c.Put(volume(pv, "net", corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs", Path: "/" + pv}}, nil))
				mounting(c, g, "net", pv)
				c.S.Claims[len(c.S.Claims)-1].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
			})
		},
		"bare pods that are too big": func(n int) *clustertest.Cluster {
			return bare(crowded(n, filled, func(_ *clustertest.Cluster, g *clustertest.Gang) { g.GPUs = 16 }))
		},
		"claimed devices": func(n int) *clustertest.Cluster {
			return crowded(n, allClaimed, func(_ *clustertest.Cluster, g *clustertest.Gang) {
				g.GPUs, g.Spec = 0, func(p *corev1.PodSpec) {
					name := "one"
					p.ResourceClaims = []corev1.PodResourceClaim{{Name: "r", ResourceClaimTemplateName: &name}}
				}
			})
		},
		"PodGroups of Volcano": func(n int) *clustertest.Cluster {
			return crowded(n, func(c *clustertest.Cluster, n int) {
				c.Queue("q", "Open", nil)
				for i := range n {
					c.Add(clustertest.Gang{Name: fmt.Sprintf("run%d", i), Workers: 1, GPUs: 8, Volcano: "q", Nodes: []string{c.Node(fmt.Sprintf("n%d", i), 8).Name}, Age: time.Hour})
				}
			}, func(_ *clustertest.Cluster, g *clustertest.Gang) { g.Volcano = "q" })
		},
		"a queue of Volcano that is not full": func(n int) *clustertest.Cluster {
			return crowded(n, func(c *clustertest.Cluster, n int) {
				c.Queue("q", "Open", map[string]any{"nvidia.com/gpu": fmt.Sprint(8*n + 16)})
				for i := range n {
					c.Add(clustertest.Gang{Name: fmt.Sprintf("run%d", i), Workers: 1, GPUs: 8, Volcano: "q", Nodes: []string{c.Node(fmt.Sprintf("n%d", i), 8).Name}, Age: time.Hour})
				}
			}, func(_ *clustertest.Cluster, g *clustertest.Gang) { g.Volcano = "q" })
		},
		"services": func(n int) *clustertest.Cluster {
			return crowded(n, func(c *clustertest.Cluster, n int) {
				for i := range n {
					c.Serves(fmt.Sprintf("web%d", i), 8, c.Node(fmt.Sprintf("n%d", i), 8).Name)
				}
			}, plain)
		},
		"pods that are being deleted": func(n int) *clustertest.Cluster {
			c := crowded(n, filled, plain)
			at := clustertest.Ago(-20 * time.Second)
			for _, p := range c.S.Pods {
				if p.Namespace != "team" && p.Spec.NodeName == "n1" {
					p.DeletionTimestamp = &at
				}
			}
			return c
		},
		"room for all": func(n int) *clustertest.Cluster {
			return crowded(n, func(c *clustertest.Cluster, n int) { c.Nodes(n, 8) }, plain)
		},
		"pods that have failed": func(n int) *clustertest.Cluster {
			c := crowded(n, filled, func(_ *clustertest.Cluster, g *clustertest.Gang) { g.Kind, g.Missing = "Job", 2 })
			for _, p := range c.S.Pods {
				p.Status.Phase = corev1.PodFailed
			}
			return c
		},
	}
}

// withVolumes are clusters in which an answer costs something for each node: claims have names of their own, so that no gang is like another.
func withVolumes() map[string]func(n int) *clustertest.Cluster {
	return map[string]func(n int) *clustertest.Cluster{
		"local volumes": func(n int) *clustertest.Cluster {
			return crowded(n, disks, func(c *clustertest.Cluster, g *clustertest.Gang) {
				g.Workers = 1
				mounting(c, g, "local", "")
			})
		},
		"volumes that are attached": func(n int) *clustertest.Cluster {
			return crowded(n, attachable, func(c *clustertest.Cluster, g *clustertest.Gang) {
				pv := "pv-" + g.Name
				c.Put(volume(pv, "net", corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: pv}}, nil))
				mounting(c, g, "net", pv)
			})
		},
	}
}

// What an answer costs when gangs of its shape had one is the same in any cluster: all that it looks at was found out before.
func TestAnswersCostTheSameInAnyCluster(t *testing.T) {
	for name, build := range growing() {
		t.Run(name, func(t *testing.T) {
			cost := func(n int) float64 {
				c := build(n)
				e, i := NewExplainer(c.Done()), 0
				e.Prepare()
				return testing.AllocsPerRun(5, func() {
					a, err := e.Explain(t.Context(), Query{Namespace: "team", Name: fmt.Sprintf("gang%d", i)}, Options{NoAdvice: true, Nodes: NodeSums})
					if err != nil {
						t.Fatal(err)
					}
					if i++; i == 1 {
						t.Log(n, a.Headline)
					}
				})
			}
			small, large := cost(40), cost(400)
			t.Log(small, large)
			if large > 2*small {
				t.Errorf("an answer makes %v objects among 40, and %v among 400", small, large)
			}
		})
	}
}

// BenchmarkGrowth is what an answer costs after the first, in a cluster of a few and of many nodes: loops that make no objects count here, too.
func BenchmarkGrowth(b *testing.B) {
	all := growing()
	maps.Copy(all, withVolumes())
	for name, build := range all {
		for _, n := range []int{40, 640} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				c, spent, answers := build(n), time.Duration(0), 0
				for b.Loop() {
					e := NewExplainer(c.Done())
					e.Prepare()
					for i := range 8 {
						start := cpu(b)
						if _, err := e.Explain(b.Context(), Query{Namespace: "team", Name: fmt.Sprintf("gang%d", i)}, Options{NoAdvice: true, Nodes: NodeSums}); err != nil {
							b.Fatal(err)
						}
						if i > 0 {
							spent, answers = spent+cpu(b)-start, answers+1
						}
					}
				}
				b.ReportMetric(float64(spent.Microseconds())/float64(answers), "cpu-us/gang")
			})
		}
	}
}
