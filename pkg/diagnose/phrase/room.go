package phrase

import (
	"fmt"
	"strings"

	"github.com/gangctl/gangctl/pkg/placement"
)

// Wants reads like: 2 workers with 8 GPUs each.
func Wants(r placement.Room) string {
	each := ""
	if r.Members != 1 {
		each = " each"
	}
	return fmt.Sprintf("%s with %s%s", Count(r.Members, Member(r.Role.Name)), Amount(r.Resource, r.PerMember), each)
}

// maxGaps is how many gaps a sentence can carry.
const maxGaps = 8

// Gaps reads like 4+4+2: what is free, node by node, largest first.
func Gaps(r placement.Room) string {
	var parts []string
	for i, n := range r.Gaps() {
		if i == maxGaps {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, Quantity(r.Resource, n))
	}
	return strings.Join(parts, "+")
}

// Busy is the sentence for a gang that finds too little free. who is "it", or the gang's name.
func Busy(r placement.Room, who string) string {
	return fmt.Sprintf("%s of %s free on the %s that %s may use, and it needs %s",
		Quantity(r.Resource, r.Free), Amount(r.Resource, r.Total), Count(len(r.Nodes), "node"), who, Wants(r))
}

// Fragmented is the sentence for a gang that finds enough free, but in pieces that are too small.
func Fragmented(r placement.Room) string {
	return fmt.Sprintf("needs %s on one node; %s are free but as %s", Wants(r), Amount(r.Resource, r.Free), Gaps(r))
}

// RoomFacts are the numbers under the names that findings give them.
func RoomFacts(r placement.Room) map[string]any {
	return map[string]any{
		"role": Role(r.Role.Name), "resource": string(r.Resource), "perMember": r.PerMember, "members": r.Members,
		"requested": r.Requested, "free": r.Free, "largestHole": r.LargestFree, "total": r.Total,
	}
}
