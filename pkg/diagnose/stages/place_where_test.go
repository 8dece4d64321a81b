package stages_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

func need(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
}

// at binds claim data to a volume with terms of node affinity, any of which will do.
func at(c *clustertest.Cluster, terms ...[]corev1.NodeSelectorRequirement) {
	boundClaim(c, "any", corev1.ReadWriteMany)
	var all []corev1.NodeSelectorTerm
	for _, term := range terms {
		all = append(all, corev1.NodeSelectorTerm{MatchExpressions: term})
	}
	c.S.Volumes[0].Spec.NodeAffinity.Required.NodeSelectorTerms = all
}

// The place of a volume is all that its node affinity requires, and what is free elsewhere is of what the members request.
func TestVolumePlaces(t *testing.T) {
	const zone, region, in = corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.NodeSelectorOpIn
	type term = []corev1.NodeSelectorRequirement
	busy := func(c *clustertest.Cluster, zones ...string) { // n1 and n2, where the data is
		c.Nodes(4, 8).Runs("a", 8, "n1", "n2").Add(gangOf(1, 8, mounts("data")))
		label(c, zone, zones...)
		label(c, region, "r", "r", "r", "r")
		label(c, "disk", "ssd", "ssd", "hdd", "hdd")
	}
	check(t, []testCase{
		{name: "several terms", code: answer.VolumeZone, exit: 3, first: "^the volume of claim data is in z1 or z2 .topology.kubernetes.io/zone., and what is free is elsewhere: 16 GPUs in z3$", build: func(c *clustertest.Cluster) {
			busy(c, "z1", "z2", "z3", "z3")
			at(c, term{need(zone, in, "z1")}, term{need(zone, in, "z2")})
		}},
		{name: "the region of the zone", code: answer.VolumeZone, exit: 3, first: "^the volume of claim data is in z1 .topology.kubernetes.io/zone., and what is free is elsewhere: 16 GPUs in z2$", build: func(c *clustertest.Cluster) {
			busy(c, "z1", "z1", "z2", "z2")
			at(c, term{need(region, in, "r"), need(zone, in, "z1")})
		}},
		{name: "where it is not", code: answer.VolumeZone, exit: 3, first: "^the volume of claim data is on nodes with topology.kubernetes.io/zone!=z2, and what is free is elsewhere: 8 GPUs on n3, 8 GPUs on n4$", build: func(c *clustertest.Cluster) {
			busy(c, "z1", "z1", "z2", "z2")
			at(c, term{need(zone, corev1.NodeSelectorOpNotIn, "z2")})
		}},
		{name: "two labels, each of which excludes a node", code: answer.VolumeZone, exit: 3, first: "^the volume of claim data is on nodes with disk=ssd and topology.kubernetes.io/zone=z1, and what is free is elsewhere: 8 GPUs on n2, 8 GPUs on n3$", build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 8, "n1").Add(gangOf(1, 8, mounts("data")))
			label(c, zone, "z1", "z1", "z2")
			label(c, "disk", "ssd", "hdd", "ssd")
			at(c, term{need("disk", in, "ssd"), need(zone, in, "z1")})
		}},
		{name: "a node", code: answer.VolumeZone, exit: 3, first: "^the volume of claim data is on n1, and what is free is elsewhere: 8 GPUs on n2$", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(gangOf(1, 8, mounts("data")))
			at(c, term{need(corev1.LabelHostname, in, "n1")})
		}},
		{name: "members without devices", code: answer.VolumeZone, exit: 3, first: "elsewhere: 192 cpu in z2$", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 0).Add(using("a", []string{"n1", "n2"}, "cpu", "96")).Add(gangOf(1, 0, mounts("data")))
			label(c, zone, "z1", "z1", "z2", "z2")
			at(c, term{need(zone, in, "z1")})
		}},
		{name: "zones of a volume that has labels", code: answer.VolumeZone, exit: 3, first: "^the volume of claim data is in z1 or z2 .topology.kubernetes.io/zone., and what is free is elsewhere: 16 GPUs in z3$", build: func(c *clustertest.Cluster) {
			busy(c, "z1", "z2", "z3", "z3")
			boundClaim(c, "", corev1.ReadWriteMany)
			c.S.Volumes[0].Labels = map[string]string{zone: "z1__z2"}
		}},
		{name: "topologies of a class", code: answer.VolumeZone, exit: 3, first: "^the volume of claim data is made, by class zonal, in z1 or z2 .topology.kubernetes.io/zone., and what is free is elsewhere: 16 GPUs in z3$", build: func(c *clustertest.Cluster) {
			busy(c, "z1", "z2", "z3", "z3")
			pvc(c, "data", "zonal", corev1.ClaimPending)
			allowed := func(zone string) corev1.TopologySelectorTerm {
				return corev1.TopologySelectorTerm{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: []string{zone}}}}
			}
			class(c, "zonal", "csi.example.com", storagev1.VolumeBindingWaitForFirstConsumer).AllowedTopologies = []corev1.TopologySelectorTerm{allowed("z1"), allowed("z2")}
		}},
	})
}
