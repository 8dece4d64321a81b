package placement

import (
	"fmt"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
)

// fleet is n nodes of two shapes in racks of 16, with pods on three of four.
func fleet(n int) *Cluster { return NewCluster(fleetObjects(n)) }

func fleetObjects(n int) Objects {
	var o Objects
	for i := range n {
		name := fmt.Sprintf("n%05d", i)
		has := amounts("cpu", 96, "memory", "768Gi", "gpu", 8)
		if i%5 == 0 {
			has = amounts("cpu", 64, "memory", "256Gi")
		}
		o.Nodes = append(o.Nodes, aNode(name, has, label("rack", fmt.Sprint("r", i/16)), label("topology.kubernetes.io/zone", fmt.Sprint("z", i%3))))
		if i%4 != 0 {
			o.Pods = append(o.Pods, aPod("p"+name, amounts("cpu", 8*(1+i%3), "memory", "32Gi"), on(name)))
			if i%5 != 0 {
				o.Pods = append(o.Pods, aPod("g"+name, amounts("cpu", 4, "gpu", 1+i%8), on(name)))
			}
		}
	}
	return o
}

func BenchmarkPlaceOneRole5000(b *testing.B) {
	c := fleet(5000)
	g := Gang{Roles: []Role{role("Worker", 64, aPod("w", amounts("cpu", 8, "memory", "64Gi", "gpu", 8)))}}
	for b.Loop() {
		if r := Place(b.Context(), c, g, Options{}); !r.Fits() {
			b.Fatal(r.Proof, r.Bound)
		}
	}
}

func BenchmarkPlaceThreeRoles5000(b *testing.B) {
	c := fleet(5000)
	g := Gang{Roles: []Role{
		role("Chief", 1, aPod("c", amounts("cpu", 8, "gpu", 4))), role("PS", 8, aPod("p", amounts("cpu", 16, "memory", "64Gi"))),
		role("Worker", 64, aPod("w", amounts("cpu", 8, "memory", "64Gi", "gpu", 8))),
	}}
	for b.Loop() {
		if r := Place(b.Context(), c, g, Options{}); !r.Fits() {
			b.Fatal(r.Proof, r.Bound)
		}
	}
}

func BenchmarkPlaceImpossible5000(b *testing.B) {
	c := fleet(5000)
	g := Gang{Roles: []Role{
		role("PS", 8, aPod("p", amounts("cpu", 16, "memory", "64Gi"))),
		role("Worker", 4000, aPod("w", amounts("cpu", 8, "memory", "64Gi", "gpu", 8))),
	}}
	for b.Loop() {
		if r := Place(b.Context(), c, g, Options{}); !r.Impossible() {
			b.Fatal(r.Proof)
		}
	}
}

func BenchmarkMatrix5000(b *testing.B) {
	c := fleet(5000)
	pod := aPod("w", amounts("cpu", 8, "memory", "64Gi", "gpu", 8))
	for b.Loop() {
		if m := c.Matrix(pod); len(m.Eligible()) == 0 {
			b.Fatal("no node is eligible")
		}
	}
}

func BenchmarkNewCluster5000(b *testing.B) {
	o := fleetObjects(5000)
	for b.Loop() {
		NewCluster(o)
	}
}

func BenchmarkWithout5000(b *testing.B) {
	c := fleet(5000)
	for b.Loop() {
		c.Without("uid-pn00001", "uid-gn00001", "uid-gn00002")
	}
}

// A new claim that all members share ties them to one node; there are thousands to choose from.
func BenchmarkPlaceSharedVolume5000(b *testing.B) {
	objects := fleetObjects(5000)
	objects.StorageClasses = classes(aClass("c", "csi.example.com", storagev1.VolumeBindingWaitForFirstConsumer))
	objects.PersistentVolumeClaims = claims(aClaim("data", "c", ""))
	c := NewCluster(objects)
	for _, tc := range []struct {
		name string
		gang Gang
	}{
		{"fits", Gang{Roles: []Role{role("W", 4, aPod("w", amounts("gpu", 1), using("data")))}}},
		{"does not", Gang{Roles: []Role{role("W", 40, aPod("w", amounts("gpu", 4), using("data")))}}},
		{"roles", Gang{Roles: []Role{role("W", 40, aPod("w", amounts("gpu", 4), using("data"))), role("P", 4, aPod("p", amounts("cpu", 4), using("data")))}}},
	} {
		b.Run(tc.name, func(b *testing.B) {
			for b.Loop() {
				Place(b.Context(), c, tc.gang, Options{Budget: budgetForTests})
			}
		})
	}
}

// BenchmarkFindCauses5000 searches for the causes that a headline names: of one role that lacks GPUs, and of three of which another lacks memory.
func BenchmarkFindCauses5000(b *testing.B) {
	c := fleet(5000)
	for name, g := range map[string]Gang{
		"one-role": {Roles: []Role{role("Worker", 4000, aPod("w", amounts("cpu", 8, "memory", "64Gi", "gpu", 8)))}},
		"three-roles": {Roles: []Role{
			role("Chief", 1, aPod("c", amounts("cpu", 8, "gpu", 4))), role("PS", 8, aPod("p", amounts("cpu", 16, "memory", "800Gi"))),
			role("Worker", 64, aPod("w", amounts("cpu", 8, "memory", "64Gi", "gpu", 8))),
		}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if causes := FindCauses(b.Context(), c, g, Options{}); len(causes.All) == 0 {
					b.Fatal("none found")
				}
			}
		})
	}
}
