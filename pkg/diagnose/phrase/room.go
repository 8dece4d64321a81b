package phrase

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/placement"
)

// Wants reads like: 2 workers with 8 GPUs each.
func Wants(r placement.Room) string {
	each := ""
	if r.Members != 1 {
		each = " each"
	}
	return fmt.Sprintf("%s with %s%s", Members(r), AmountUp(r.Resource, r.PerMember), each)
}

// Members counts the members of a room: 2 workers; 3 members, of several roles that request the same, which [Kinds] lists.
func Members(r placement.Room) string { return Count(r.Members, Noun(r)) }

// Noun is what the members of a room are called: worker, or member if they are of several roles.
func Noun(r placement.Room) string {
	if len(kinds(r)) > 1 {
		return "member"
	}
	return Member(r.Role.Name)
}

// Kinds reads like: (1 master, 2 workers), with a space before it. It is empty for the members of one role.
func Kinds(r placement.Room) string {
	all := kinds(r)
	var members int32
	for _, role := range r.Alike {
		members += role.Count
	}
	if len(all) < 2 || members != r.Members { // which of them the gang needs is open
		return ""
	}
	return " (" + strings.Join(all, ", ") + ")"
}

// kinds counts the members of each role, in the order of the gang.
func kinds(r placement.Room) []string {
	var names []string
	counts := map[string]int32{}
	for _, role := range r.Alike {
		name := Member(role.Name)
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		counts[name] += role.Count
	}
	for i, name := range names {
		names[i] = Count(counts[name], name)
	}
	return names
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
		parts = append(parts, Down(r.Resource, n))
	}
	return strings.Join(parts, "+")
}

// Allowed reads like: the 2 nodes that resnet may use.
func Allowed(r placement.Room, who string) string {
	return fmt.Sprintf("the %s that %s may use", Count(len(r.Nodes), "node"), who)
}

// WholeCluster stands for all nodes, with their verb, where no other has any of a resource.
const WholeCluster = "the whole cluster has"

// Busy is the sentence for a gang that finds too little free. nodes are those that it may use, as [Allowed] names them.
func Busy(r placement.Room, nodes string) string {
	pieces := Elsewhere(r)
	if len(r.Gaps()) > 1 {
		pieces = ", as " + Gaps(r) + pieces
	}
	return fmt.Sprintf("%s of %s free on %s%s, and it needs %s%s", Down(r.Resource, r.Free), AmountDown(r.Resource, r.Total), nodes, pieces, Wants(r), InAll(r))
}

// InAll is what all members request, where that is to be compared with what is free. It reads like: (1 master, 2 workers), 12 in all.
func InAll(r placement.Room) string {
	if r.Requested == r.PerMember {
		return Kinds(r)
	}
	return fmt.Sprintf("%s, %s in all", Kinds(r), Up(r.Resource, r.Requested))
}

// Fragmented is the sentence for a gang that finds enough free, but in pieces that are too small.
func Fragmented(r placement.Room) string {
	return fmt.Sprintf("needs %s on one node%s; %s are free but as %s%s", Wants(r), InAll(r), AmountDown(r.Resource, r.Free), Gaps(r), Elsewhere(r))
}

// NotShort is the sentence for a gang that has no placement, though enough of a resource is free, in pieces that are large enough: something else keeps it
// from them: what was not found in time, or what the engine reports of a member, such as a claim that is missing.
func NotShort(r placement.Room) string {
	return fmt.Sprintf("needs %s%s, for which %s are free, as %s, but not with all else that it requires", Wants(r), InAll(r), AmountDown(r.Resource, r.Free), Gaps(r))
}

// Elsewhere reads like: (4Gi where all else fits), with a space before it, if some of what is free is where something else that a member requests is not.
func Elsewhere(r placement.Room) string {
	if r.Usable == r.Free {
		return ""
	}
	return fmt.Sprintf(" (%s where all else fits)", Down(r.Resource, r.Usable))
}

// RoomFacts are the numbers under the names that findings give them.
func RoomFacts(r placement.Room) map[string]any {
	facts := map[string]any{
		"role": Role(r.Role.Name), "resource": string(r.Resource), "perMember": r.PerMember, "members": r.Members,
		"requested": r.Requested, "free": r.Free, "usable": r.Usable, "largestHole": r.LargestFree, "total": r.Total,
	}
	if roles := roleNames(r.Alike); len(roles) > 1 {
		facts["roles"] = roles
	}
	return facts
}

// roleNames are the names of roles as users know them, each once.
func roleNames(roles []placement.Role) []string {
	var names []string
	for _, role := range roles {
		if name := Role(role.Name); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
