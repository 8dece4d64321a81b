package agreement

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Options are what scenarios are made of.
type Options struct {
	// NoTraps leaves out the gangs that a scheduler may miss a placement of because it places one member after the other.
	NoTraps bool
	// Gangs is how many gangs come to a scenario.
	Gangs int
}

// New makes the scenario of a seed.
func New(seed uint64, o Options) Scenario {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x67616e67)), o: o, s: Scenario{Seed: seed}, spare: map[string]map[corev1.ResourceName]int64{}}
	g.nodes()
	g.volumes()
	g.devices()
	if g.once(4) {
		g.s.Defaults = corev1.ResourceList{corev1.ResourceMemory: gibi(g.between(1, 3))}
	}
	g.residents()
	for i := range o.Gangs {
		g.s.Gangs = append(g.s.Gangs, g.gang(fmt.Sprintf("g%d", i)))
	}
	g.leavers()
	return g.s
}

// generator makes one scenario.
type generator struct {
	*rand.Rand
	o     Options
	s     Scenario
	spare map[string]map[corev1.ResourceName]int64 // by node: what residents leave, roughly
}

// once is true once in n times, on average.
func (g *generator) once(n int) bool { return g.IntN(n) == 0 }

// between is a number from lo to hi.
func (g *generator) between(lo, hi int) int { return lo + g.IntN(hi-lo+1) }

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// What nodes and pods are made of.
const (
	zoneLabel = "topology.kubernetes.io/zone"
	rackLabel = "example.com/rack"
	poolLabel = "pool"
	gpu       = corev1.ResourceName("nvidia.com/gpu")
	nic       = corev1.ResourceName("example.com/nic")
	// schedulerName is that of the scheduler that is compared with.
	schedulerName = "gang-scheduler"
	// gateName is the gate that holds a gang.
	gateName = "agreement.gangctl.dev/hold"
	// Priority classes whose pods never preempt.
	highClass, lowClass = "agreement-high", "agreement-low"
	// Classes of storage whose volumes are chosen, or made, when a pod that uses them is placed.
	staticClass, dynamicClass = "agreement-static", "agreement-dynamic"
	provisioner               = "agreement.gangctl.dev"
	// deviceClass are the devices of all nodes, which deviceDriver has put there.
	deviceClass, deviceDriver = "agreement-device", "device.agreement.gangctl.dev"
	// overheadClass is a RuntimeClass that charges for itself and runs on some nodes only.
	overheadClass = "agreement-overhead"
)

func milli(n int) resource.Quantity { return *resource.NewMilliQuantity(int64(n), resource.DecimalSI) }

func whole(n int) resource.Quantity { return *resource.NewQuantity(int64(n), resource.DecimalSI) }

func gibi(n int) resource.Quantity { return *resource.NewQuantity(int64(n)<<30, resource.BinarySI) }
