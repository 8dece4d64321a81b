package placement

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

func benchPlace(b *testing.B, c *Cluster, g Gang, want Proof) {
	for b.Loop() {
		if r := Place(b.Context(), c, g, Options{}); r.Proof != want {
			b.Fatal(r.Proof, r.Bound, r.Placed)
		}
	}
}

func workers(n int32, options ...podOption) Role {
	options = append(options, labelled("job", "j"))
	return role("Worker", n, aPod("w", amounts("cpu", 8, "memory", "64Gi", "gpu", 4), options...))
}

func BenchmarkPlaceApartOnHosts5000(b *testing.B) {
	benchPlace(b, fleet(5000), Gang{Roles: []Role{workers(64, apart(corev1.LabelHostname, "job", "j"))}}, Witness)
}

func BenchmarkPlaceSpreadOverZones5000(b *testing.B) {
	benchPlace(b, fleet(5000), Gang{Roles: []Role{workers(64, spread("topology.kubernetes.io/zone", 1, "job", "j"))}}, Witness)
}

func BenchmarkPlace500SpreadOverZones5000(b *testing.B) {
	benchPlace(b, fleet(5000), Gang{Roles: []Role{workers(500, spread("topology.kubernetes.io/zone", 1, "job", "j"))}}, Witness)
}

func BenchmarkPlaceSpreadOverHosts5000(b *testing.B) {
	benchPlace(b, fleet(5000), Gang{Roles: []Role{workers(64, spread(corev1.LabelHostname, 1, "job", "j"))}}, Witness)
}

func BenchmarkPlaceTogetherInRack5000(b *testing.B) {
	benchPlace(b, fleet(5000), Gang{Roles: []Role{
		workers(8, affineTo("rack", "job", "j")), role("PS", 2, aPod("p", amounts("cpu", 4), affineTo("rack", "job", "j"), labelled("job", "j"))),
	}}, Witness)
}

func BenchmarkPlaceTopologyKey5000(b *testing.B) {
	benchPlace(b, fleet(5000), Gang{Topology: gang.Topology{Required: "rack"}, Roles: []Role{workers(8), role("PS", 2, aPod("p", amounts("cpu", 4)))}}, Witness)
}

// slicesOf are roles of 8 workers each, which differ by the label of their part.
func slicesOf(n int) (roles []Role) {
	for i := range n {
		roles = append(roles, role(fmt.Sprint("Worker-", i), 8, aPod(fmt.Sprint("w", i), amounts("cpu", 8, "memory", "64Gi", "gpu", 4), labelled("slice", fmt.Sprint(i)))))
	}
	return roles
}

func BenchmarkPlacePartsInRacks5000(b *testing.B) {
	benchPlace(b, fleet(5000), Gang{Topology: gang.Topology{Parts: []gang.PartRule{{By: []string{"slice"}, Required: "rack"}}}, Roles: slicesOf(16)}, Witness)
}

// No rack has room for 64 workers.
func BenchmarkPlacePartsInRacksImpossible5000(b *testing.B) {
	roles := slicesOf(16)
	roles[0].Count = 64
	benchPlace(b, fleet(5000), Gang{Topology: gang.Topology{Parts: []gang.PartRule{{By: []string{"slice"}, Required: "rack"}}}, Roles: roles}, Exhausted)
}

func BenchmarkPlaceApartInRacksImpossible5000(b *testing.B) {
	benchPlace(b, fleet(5000), Gang{Roles: []Role{workers(400, apart("rack", "job", "j"))}}, CountingBound)
}
