package phrase

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/placement"
)

// maxShortages is how many groups of nodes a sentence can carry.
const maxShortages = 4

// Scattered is the sentence for a gang that finds one resource short on some nodes and others on others. The resource of a room comes first, on the nodes that
// have all else; alone, if the gang would fit without it.
func Scattered(r placement.Room, all []placement.Shortage, alone bool) string {
	own := slices.IndexFunc(all, func(s placement.Shortage) bool { return len(s.Short) == 1 && s.Of(r.Resource) })
	if own < 0 {
		return fmt.Sprintf("no node has all that a %s requests: %s", Noun(r), Shortages(all))
	}
	there, pieces, in, rest := roomOn(r, all[own].Nodes), "", "", ""
	if len(there.Gaps()) > 1 {
		pieces = ", as " + Gaps(there)
	}
	if r.Requested != r.PerMember {
		in = fmt.Sprintf(", %s in all", Up(r.Resource, r.Requested))
	}
	if alone {
		rest = ", all else would fit there"
	}
	return fmt.Sprintf("%s %s on %s%s: %s of %s left%s, and each %s requests %s%s%s; %s", Resource(r.Resource), IsShort(r.Resource), Names(all[own].Nodes), rest,
		Down(r.Resource, there.Free), Down(r.Resource, there.Total), pieces, Noun(r), Up(r.Resource, r.PerMember), Kinds(r), in,
		Shortages(slices.Delete(slices.Clone(all), own, own+1)))
}

// Shortages reads like: n1 is short of cpu (8 of 96 left, 32 requested); n2, n3 are short of memory (at most 28Gi of 768Gi left, 64Gi requested).
func Shortages(all []placement.Shortage) string {
	var groups []string
	for i, s := range all {
		if i == maxShortages {
			groups = append(groups, "others of other resources")
			break
		}
		most := ""
		if len(s.Nodes) > 1 {
			most = "at most "
		}
		groups = append(groups, fmt.Sprintf("%s short of %s", AreNames(s.Nodes), NamesOf(s.Short, func(v placement.Violation) string {
			return fmt.Sprintf("%s (%s%s of %s left, %s requested)", Resource(v.Resource), most, Down(v.Resource, max(0, v.Available)), Down(v.Resource, v.Total), Up(v.Resource, v.Requested))
		})))
	}
	return strings.Join(groups, "; ")
}

// roomOn is the part of a room that is on some of its nodes.
func roomOn(r placement.Room, nodes []string) placement.Room {
	part, among := r, sets.New(nodes...)
	part.Nodes, part.Free, part.Total = nil, 0, 0
	for _, n := range r.Nodes {
		if among.Has(n.Node) {
			part.Nodes, part.Free, part.Total = append(part.Nodes, n), part.Free+n.Free, part.Total+n.Total
		}
	}
	return part
}
