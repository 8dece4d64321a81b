package stages_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

func TestRules(t *testing.T) {
	zone := func(c *clustertest.Cluster) { label(c, "zone", "z1", "z1", "z2", "z2") }
	spread := func(skew int32, how corev1.UnsatisfiableConstraintAction) func(*clustertest.Gang) {
		return spec(func(p *corev1.PodSpec) {
			p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: skew, TopologyKey: "zone", WhenUnsatisfiable: how,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"training.kubeflow.org/job-name": "gang"}}}}
		})
	}
	annotated := func(notes map[string]any) func(*clustertest.Gang) {
		return func(g *clustertest.Gang) { g.Group = set(notes, "metadata", "annotations") }
	}
	blocks := func(c *clustertest.Cluster) *clustertest.Cluster {
		c.Nodes(8, 8)
		label(c, "rack", "r1", "r1", "r2", "r2", "r3", "r3", "r4", "r4")
		label(c, "block", "b1", "b1", "b1", "b1", "b2", "b2", "b2", "b2")
		label(c, "zone", "z1", "z1", "z1", "z1", "z1", "z1", "z1", "z1")
		return c
	}
	halves := func(c *clustertest.Cluster) *clustertest.Cluster { // half of each rack is in use
		return blocks(c).Runs("a", 8, "n1").Runs("b", 8, "n3").Runs("c", 8, "n5").Runs("d", 8, "n7")
	}
	young := func(g *clustertest.Gang) { g.Age = 20 * time.Second }
	const racks = "r1 has room for 1, r2 for 1, r3 for 1, r4 for 1"
	check(t, []testCase{
		{name: "one rack, and a block would do", code: answer.TopologyFragmented, exit: 3, first: "all 2 members must share one value of rack: " + racks + "; block=b1 would do", fix: "write block for rack", build: func(c *clustertest.Cluster) {
			halves(c).Add(gangOf(2, 8, annotated(map[string]any{gang.TopologyRequired: "rack"})))
		}},
		{name: "the pods have to stay in one rack", code: answer.TopologyFragmented, exit: 3, first: "one value of rack: " + racks, fix: "write block for rack", build: func(c *clustertest.Cluster) {
			halves(c).Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Pod = func(_ int, p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, gang.TopologyRequired, "rack") }
				g.Job = func(job map[string]any) {
					set("rack", "spec", "tfReplicaSpecs", "Worker", "template", "metadata", "annotations", gang.TopologyRequired)(job)
				}
			}))
		}},
		{name: "a topology that cannot be read", code: answer.SelectorNoMatch, exit: 4, first: "it is placed nowhere, as it cannot be read where its members must be together: pod [^:]*: annotation gangctl.dev/topology-required: \"r r\" is not the key", build: func(c *clustertest.Cluster) {
			blocks(c).Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Pod = func(_ int, p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, gang.TopologyRequired, "r r") }
			}))
		}},
		{name: "no rack is large enough, and a block would do", code: answer.TooBig, exit: 6, first: "all 3 members must share one value of rack, and the largest has room for 2; block=b1 would do", fix: "write block for rack", build: func(c *clustertest.Cluster) {
			blocks(c).Add(gangOf(3, 8, annotated(map[string]any{gang.TopologyRequired: "rack"})))
		}},
		{name: "a rack is preferred, and there is none", code: answer.Fits, exit: 3, first: "all at block=b1", wantText: []string{"no value of rack, which it prefers, has room for all: " + racks}, build: func(c *clustertest.Cluster) {
			halves(c).Add(gangOf(2, 8, young, annotated(map[string]any{gang.TopologyPreferred: "rack,block"})))
		}},
		{name: "a rack is preferred in the zone that is required", code: answer.Fits, exit: 3, first: "all at rack=r1", build: func(c *clustertest.Cluster) {
			blocks(c).Add(gangOf(2, 4, young, annotated(map[string]any{gang.TopologyRequired: "zone", gang.TopologyPreferred: "rack"})))
		}},
		{name: "a replacement must go to the rack of the others", code: answer.MemberLost, exit: 7, wantText: []string{"its other members are at rack=r1, where there is room for 0 of 1; everywhere: r2 has room for 1"}, build: func(c *clustertest.Cluster) {
			halves(c).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n2"} }, annotated(map[string]any{gang.TopologyRequired: "rack"})))
		}},
		{name: "one rack, by affinity", code: answer.TopologyFragmented, exit: 3, not: []string{"without requests of GPUs"}, first: "all 2 members must share one value of zone: z1 has room for 1, z2 for 1", wantText: []string{"places by zone: z1 1, z2 1"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("a", 8, "n1").Runs("b", 8, "n3").Add(gangOf(2, 8, spec(func(p *corev1.PodSpec) { p.Affinity = clustertest.Together("gang", "zone") })))
			zone(c)
		}},
		{name: "one rack, by the group", code: answer.TopologyFragmented, exit: 3, first: "one value of zone", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("a", 8, "n1").Runs("b", 8, "n3").Add(gangOf(2, 8, speaks(c, "native", "default-scheduler"), func(g *clustertest.Gang) {
				g.Group = set([]any{map[string]any{"key": "zone"}}, "spec", "schedulingConstraints", "topology")
			}))
			zone(c)
		}},
		{name: "a rack by a label that no node has", code: answer.SelectorNoMatch, exit: 4, first: "no node has the label zones, for the topology of Worker", wantText: []string{"did you mean the label zone"}, fix: "write zone for zones", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(gangOf(2, 8, spec(func(p *corev1.PodSpec) { p.Affinity = clustertest.Together("gang", "zones") })))
			zone(c)
		}},
		{name: "a spread over a label that no node has", code: answer.SelectorNoMatch, exit: 4, first: "no node has the label zone", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(gangOf(2, 8, spread(1, corev1.DoNotSchedule)))
		}},
		{name: "no rack is large enough", code: answer.TooBig, exit: 6, first: "all 3 members must share one value of zone, and the largest has room for 2", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(gangOf(3, 8, spec(func(p *corev1.PodSpec) { p.Affinity = clustertest.Together("gang", "zone") })))
			zone(c)
		}},
		{name: "spread", code: answer.TopologySpread, exit: 3, first: "the spread over zone .maxSkew 1. .room for none in z1, 2 in z2. keeps", wantText: []string{"research/a holds 16 GPUs on n1, n2"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8, spread(1, corev1.DoNotSchedule)))
			zone(c)
		}},
		{name: "a spread that is a wish", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8, young, spread(1, corev1.ScheduleAnyway)))
			zone(c)
		}},
		{name: "a spread wide enough", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8, young, spread(2, corev1.DoNotSchedule)))
			zone(c)
		}},
		{name: "apart, and too few nodes", code: answer.TooBig, exit: 6, first: "anti-affinity requires 3 nodes, one for each worker, and there are 2", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(3, 2, spec(func(p *corev1.PodSpec) { p.Affinity = clustertest.Apart("gang") })))
		}},
		{name: "apart, and the nodes are busy", code: answer.Fragmented, exit: 3, first: "each on a node of its own", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(gangOf(2, 2, spec(func(p *corev1.PodSpec) { p.Affinity = clustertest.Apart("gang") })))
		}},
		{name: "the volume is elsewhere", code: answer.VolumeZone, exit: 3, first: "claim data is in z1 .topology.kubernetes.io/zone., and what is free is elsewhere: 16 GPUs in z2", wantText: []string{"research/a holds 16 GPUs on n1, n2"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("a", 8, "n1", "n2").Add(gangOf(1, 8, mounts("data")))
			label(c, corev1.LabelTopologyZone, "z1", "z1", "z2", "z2")
			boundClaim(c, "z1", corev1.ReadWriteMany)
		}},
		{name: "two volumes in two zones", code: answer.TooBig, exit: 6, first: "claim data is in z1 .topology.kubernetes.io/zone., that of claim ckpt in z2, and there is no node that takes a worker",
			wantText: []string{"n1 .volumeZone claim ckpt.*n2 .volumeZone claim data"}, not: []string{"would take one"}, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data", "ckpt")))
				label(c, corev1.LabelTopologyZone, "z1", "z2")
				boundClaim(c, "z1", corev1.ReadWriteMany)
				ckpt := *c.S.Claims[0]
				ckpt.Name, ckpt.UID, ckpt.Spec.VolumeName = "ckpt", "pvc2", "vol2"
				vol := c.S.Volumes[0].DeepCopy()
				vol.Name, vol.Spec.ClaimRef.Name, vol.Spec.ClaimRef.UID = "vol2", "ckpt", "pvc2"
				vol.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values = []string{"z2"}
				c.Put(&ckpt)
				c.Put(vol)
			}},
		{name: "the volume is where no GPUs are", code: answer.TooBig, exit: 6, first: "claim data is in z1 .topology.kubernetes.io/zone., and no node there has GPUs; what would take one is in z2$", build: func(c *clustertest.Cluster) {
			c.Node("n1", 0)
			c.Node("n2", 8)
			c.Add(gangOf(1, 8, mounts("data")))
			label(c, corev1.LabelTopologyZone, "z1", "z2")
			boundClaim(c, "z1", corev1.ReadWriteMany)
		}},
		{name: "the volume is where no node is", code: answer.TooBig, exit: 6, first: "in z9 .topology.kubernetes.io/zone., and there is no node that takes a worker; what would take one is in z1, z2$", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data")))
			label(c, corev1.LabelTopologyZone, "z1", "z2")
			boundClaim(c, "z9", corev1.ReadWriteMany)
		}},
		{name: "a volume for one pod that another job uses", code: answer.VolumeMultiAttach, exit: 3, first: "claim data is ReadWriteOncePod, and research-pod uses it", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data")))
			boundClaim(c, "", corev1.ReadWriteOncePod)
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "research-pod", UID: "rp"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
			p.Spec.NodeName, p.Spec.RestartPolicy = "n1", corev1.RestartPolicyNever
			p.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
			c.Put(p)
		}},
		{name: "a volume for one pod that another job uses, and the nodes are busy", code: answer.NodesBusy, exit: 3, also: []answer.Code{answer.VolumeMultiAttach}, first: "0 of 8 GPUs free.*; and claim data is ReadWriteOncePod, and user-worker-0 uses it on n1", not: []string{"all else would fit", "not found out in time"}, build: func(c *clustertest.Cluster) {
			boundClaim(c, "", corev1.ReadWriteOncePod)
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(clustertest.Gang{Name: "user", Workers: 1, Nodes: []string{"n1"}, Spec: mounting("data")}).Add(gangOf(1, 8, mounts("data")))
		}},
		{name: "a volume for one pod that a service uses, and the nodes are busy", code: answer.VolumeMultiAttach, exit: 4, also: []answer.Code{answer.NodesBusy}, first: "claim data is ReadWriteOncePod, and user uses it on n1, never ends", build: func(c *clustertest.Cluster) {
			boundClaim(c, "", corev1.ReadWriteOncePod)
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "user", UID: "user"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
			p.Spec.NodeName = "n1"
			mounting("data")(&p.Spec)
			c.Nodes(1, 8).Runs("a", 8, "n1").Put(p).Add(gangOf(1, 8, mounts("data")))
		}},
		{name: "a volume for one pod that two members share", code: answer.VolumeMultiAttach, exit: 4, first: "claim data is ReadWriteOncePod, and 2 members", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data")))
			boundClaim(c, "", corev1.ReadWriteOncePod)
		}},
		{name: "volumes of the members' own, in two zones of which one is busy", code: answer.VolumeZone, exit: 3, first: "the volume of claim gang-worker-1-scratch is in z2", wantText: []string{"research/a holds 8 GPUs on n2"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 8, "n2").Add(gangOf(2, 8, spec(func(p *corev1.PodSpec) {
				p.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}}}
			})))
			label(c, corev1.LabelTopologyZone, "z1", "z2", "z1")
			for i, zone := range []string{"z1", "z2"} {
				boundClaim(c, zone, corev1.ReadWriteOnce)
				name := fmt.Sprintf("gang-worker-%d-scratch", i)
				claim, pv := c.S.Claims[i], c.S.Volumes[i]
				claim.Name, claim.UID, claim.Spec.VolumeName, pv.Name = name, types.UID(name), name, name
				pv.Spec.ClaimRef.Name, pv.Spec.ClaimRef.UID = name, claim.UID
				at := slices.IndexFunc(c.S.Pods, func(p *corev1.Pod) bool { return p.Name == fmt.Sprint("gang-worker-", i) })
				claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c.S.Pods[at], corev1.SchemeGroupVersion.WithKind("Pod"))}
			}
		}},
		{name: "a volume for one node that two members share", code: answer.VolumeMultiAttach, exit: 4, alone: true, first: "claim data is ReadWriteOnce.* no node has room for all 2 members", wantText: []string{"on n1, n2, where they hang"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data"), young))
			disk(c)
		}},
		{name: "a volume for one node, of a driver that attaches none", code: answer.Fits, exit: 3, not: []string{"ReadWriteOnce"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data"), young))
			disk(c)
			no := false
			c.Put(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "disk.example.com"}, Spec: storagev1.CSIDriverSpec{AttachRequired: &no}})
		}},
		{name: "a volume for one node, and drivers may not be listed", code: answer.Fits, exit: 3, wantText: []string{"claim data is ReadWriteOnce.*n1, n2"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, mounts("data"), young))
			disk(c)
			c.S.Denied = []snapshot.Denial{{Resource: "csidrivers"}}
		}},
		{name: "a volume for one node that a service uses on a node without GPUs", code: answer.VolumeMultiAttach, exit: 4, alone: true, first: "claim data is ReadWriteOnce, and user uses it on plain, where the members that mount it have no room, never ends", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data"), young))
			usesDisk(c, "plain", corev1.RestartPolicyAlways)
		}},
		{name: "a volume for one node that a job uses on a node without GPUs", code: answer.VolumeMultiAttach, exit: 3, alone: true, first: "claim data is ReadWriteOnce, and user uses it on plain", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data"), young))
			usesDisk(c, "plain", corev1.RestartPolicyNever)
		}},
		{name: "a volume for one node that a service uses on a node without GPUs, and the others are busy", code: answer.VolumeMultiAttach, exit: 4, also: []answer.Code{answer.NodesBusy}, first: "user uses it on plain", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8, mounts("data")))
			usesDisk(c, "plain", corev1.RestartPolicyAlways)
		}},
		{name: "a volume for one node that a service uses where there is room", code: answer.Fits, exit: 3, never: []answer.Code{answer.VolumeMultiAttach}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(1, 8, mounts("data"), young))
			usesDisk(c, "n2", corev1.RestartPolicyAlways)
		}},
		{name: "a volume for one node, and one node", code: answer.Fits, exit: 3, not: []string{"ReadWriteOnce"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 4, mounts("data"), young))
			boundClaim(c, "", corev1.ReadWriteOnce)
		}},
	})
}

// disk adds claim data, bound to a volume that a driver attaches to one node.
func disk(c *clustertest.Cluster) {
	boundClaim(c, "", corev1.ReadWriteOnce)
	c.S.Volumes[0].Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "vol"}
}

// usesDisk adds a disk that a pod uses on a node, which has no GPUs if it is not there yet.
func usesDisk(c *clustertest.Cluster, node string, restarts corev1.RestartPolicy) {
	disk(c)
	if !slices.ContainsFunc(c.S.Nodes, func(n *corev1.Node) bool { return n.Name == node }) {
		c.Node(node, 0)
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "user", UID: "user"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	p.Spec.NodeName, p.Spec.RestartPolicy = node, restarts
	mounting("data")(&p.Spec)
	c.Put(p)
}

// boundClaim adds claim data, bound to a volume in a zone, or anywhere.
func boundClaim(c *clustertest.Cluster, zone string, mode corev1.PersistentVolumeAccessMode) {
	claim := pvc(c, "data", "", corev1.ClaimBound)
	claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	claim.Spec.VolumeName, claim.Spec.AccessModes = "vol", []corev1.PersistentVolumeAccessMode{mode}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "vol"}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "team", Name: "data", UID: "pvc"}
	pv.Spec.AccessModes = claim.Spec.AccessModes
	if zone != "" {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}}}}
	}
	c.Put(pv)
}

// Of members that have a node already and of those to come one each is on a node, where they have a host port.
func TestHostPortOfMembersWithNode(t *testing.T) {
	port := spec(func(p *corev1.PodSpec) {
		p.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 6818, HostPort: 6818, Protocol: corev1.ProtocolTCP}}
	})
	check(t, []testCase{
		{name: "three of four", code: answer.MemberLost, exit: 7, wantText: []string{"a host port allows one worker a node: 4 are needed, 3 nodes may be used"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(4, 1, port, func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2", "n3"} }))
		}},
		{name: "of two roles, and nodes without GPUs take none", code: answer.TooBig, exit: 6, first: "a host port allows one member a node: 4 are needed, 2 nodes may be used", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Node("c1", 0)
			c.Node("c2", 0)
			c.Add(gangOf(3, 2, port, func(g *clustertest.Gang) {
				g.More = []clustertest.Role{{Name: "Chief", Replicas: 1, GPUs: 2, Spec: g.Spec}}
			}))
		}},
	})
}
