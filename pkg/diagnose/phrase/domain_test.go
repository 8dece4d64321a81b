package phrase

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/placement"
)

func TestTogether(t *testing.T) {
	room := func(name string, members int32) placement.DomainRoom {
		return placement.DomainRoom{Domain: name, Members: members}
	}
	gang := placement.Gang{MinMember: 8, Roles: []placement.Role{{Count: 8}}}
	bound := placement.Gang{MinMember: 8, Roles: []placement.Role{{Count: 1}}, Bound: make([]types.UID, 7)}
	for _, tt := range []struct {
		gang  placement.Gang
		rooms []placement.DomainRoom
		at    []string
		want  string
	}{
		{gang, []placement.DomainRoom{room("r3", 6), room("r1", 5), room("r2", 0)}, nil, "all 8 members must share one value of rack: r3 has room for 6, r1 for 5"},
		{gang, []placement.DomainRoom{room("r3", 0), room("r4", 0)}, nil, "all 8 members must share one value of rack: r3 has room for none"},
		{gang, nil, nil, "all 8 members must share one value of rack: no node has it"},
		{gang, []placement.DomainRoom{room("a", 6), room("b", 5), room("c", 4), room("d", 3), room("e", 2), room("f", 1)}, nil,
			"all 8 members must share one value of rack: a has room for 6, b for 5, c for 4, d for 3, 2 others for as many or less"},
		{bound, []placement.DomainRoom{room("r2", 1), room("r1", 0)}, []string{"r1"}, "its other members are at rack=r1, where there is room for 0 of 1; everywhere: r2 has room for 1"},
		{bound, nil, []string{"r1", "r2"}, "all members must share one value of rack, and those with a node are at r1, r2"},
		{bound, nil, []string{""}, "all members must share one value of rack, and those with a node are where no node has it"},
	} {
		if got := Together(tt.gang, "rack", tt.rooms, tt.at); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestCountDomains(t *testing.T) {
	for _, test := range []struct {
		n         int
		key, want string
	}{
		{1, "kubernetes.io/hostname", "1 node"}, {3, "topology.kubernetes.io/zone", "3 zones"}, {2, "topology.kubernetes.io/region", "2 regions"}, {2, "rack", "2 values of rack"}, {1, "rack", "1 value of rack"},
	} {
		if got := CountDomains(test.n, test.key); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
