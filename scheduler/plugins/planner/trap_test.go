package planner

import (
	"testing"
)

// T26: the packing trap. Placed one by one, the members of a gang block each other.
func TestPackingTrap(t *testing.T) {
	r := newRig(t)
	r.node("n1", "nvidia.com/gpu", "8")
	r.node("n2", "nvidia.com/gpu", "8")
	r.gang("g", 6)
	r.create(
		pod("chief", "g", "nvidia.com/gpu", "4"), pod("ps-0", "g", "nvidia.com/gpu", "3"), pod("ps-1", "g", "nvidia.com/gpu", "3"),
		pod("w-0", "g", "nvidia.com/gpu", "2"), pod("w-1", "g", "nvidia.com/gpu", "2"), pod("w-2", "g", "nvidia.com/gpu", "2"),
	)
	r.bound("chief", "ps-0", "ps-1", "w-0", "w-1", "w-2")
}
