package phrase

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang/networktopology"
	"github.com/gangctl/gangctl/pkg/placement"
)

// maxDomains is how many domains a sentence can carry.
const maxDomains = 4

// Domains reads like: r3 has room for 6, r1 for 5, 2 others for less. Those without room are not named.
func Domains(rooms []placement.DomainRoom) string {
	var parts []string
	for i, r := range rooms {
		if r.Members == 0 && i > 0 {
			break
		}
		if len(parts) == maxDomains {
			parts = append(parts, fmt.Sprintf("%s for as many or less", Count(len(rooms)-i, "other")))
			break
		}
		verb := ""
		if i == 0 {
			verb = "has room "
		}
		room := fmt.Sprint(r.Members)
		if r.Members == 0 {
			room = "none"
		}
		parts = append(parts, fmt.Sprintf("%s %sfor %s", r.Domain, verb, room))
	}
	if len(parts) == 0 {
		return "no node has it"
	}
	return strings.Join(parts, ", ")
}

// Together is the sentence for a gang whose members must share a domain of a node label, none of which has room for them. rooms are those of the domains,
// and at the domains of the members that have a node: any other member must go there.
func Together(g placement.Gang, key string, rooms []placement.DomainRoom, at []string) string {
	return TogetherOf("", g, key, rooms, at)
}

// TogetherOf is Together for the members of a part of the gang, whom a text names as the end of a noun.
func TogetherOf(which string, g placement.Gang, key string, rooms []placement.DomainRoom, at []string) string {
	return together(which, "share one "+Domain(key), g, key, rooms, at)
}

// together is Together for the members that a text names, all of the gang if it is empty, and with what they must do.
func together(which, must string, g placement.Gang, key string, rooms []placement.DomainRoom, at []string) string {
	needs := g.Total()
	if g.MinMember > 0 {
		needs = min(needs, g.MinMember)
	}
	left := max(0, needs-int32(len(g.Bound)))
	switch {
	case len(at) > 1:
		return fmt.Sprintf("all members%s must %s, and those with a node are at %s", which, must, Names(at))
	case len(at) == 1 && at[0] == "":
		return fmt.Sprintf("all members%s must %s, and those with a node are where no node has it", which, must)
	case len(at) == 1:
		var there int32
		for _, r := range rooms {
			if r.Domain == at[0] {
				there = r.Members
			}
		}
		return fmt.Sprintf("its other members%s are %s, where there is room for %d of %d; everywhere: %s", which, At(key, at[0]), there, left, Domains(rooms))
	}
	return fmt.Sprintf("all %d members%s must %s: %s", needs, which, must, Domains(rooms))
}

// TogetherInParts is the sentence for a gang of which the members of each part must share a domain. It names a part that has room in none; if each has room
// alone, it has the domains of the largest.
func TogetherInParts(parts []placement.PartRoom) string {
	if len(parts) == 0 {
		return ""
	}
	if few := slices.IndexFunc(parts, func(p placement.PartRoom) bool { return p.Apart > p.Domains }); few >= 0 {
		p := parts[few]
		return fmt.Sprintf("each of %d parts must have a %s to itself, and there %s %d", p.Apart, Domain(p.Rule.Required), Verb(p.Domains, "is", "are"), p.Domains)
	}
	short := slices.IndexFunc(parts, func(p placement.PartRoom) bool { return !p.Roomy() })
	hardest := slices.MaxFunc(parts, func(a, b placement.PartRoom) int { return cmp.Compare(a.Total(), b.Total()) })
	if short >= 0 {
		p := parts[short]
		return together(p.Members(), mustOf(p), p.Gang, p.Rule.Required, p.Rooms, p.At)
	}
	alike := 0
	for _, p := range parts {
		if p.Rule.Required == hardest.Rule.Required {
			alike++
		}
	}
	must, rooms := mustOf(hardest), Domains(hardest.Rooms)
	if alike == 1 {
		return fmt.Sprintf("all members%s must %s, and there is room for what the gang needs of them alone, but not with the others: %s", hardest.Members(), must, rooms)
	}
	return fmt.Sprintf("the members of each of %d parts must %s, and there is room for what the gang needs of each alone, but not for all at once: %s", alike, must, rooms)
}

// mustOf is what the members of a part must do: share one value of rack, and keep it for themselves.
func mustOf(p placement.PartRoom) string {
	if p.Apart > 0 {
		return "have a " + Domain(p.Rule.Required) + " to themselves"
	}
	return "share one " + Domain(p.Rule.Required)
}

// Domain is what one domain of a node label is called: value of rack, or HyperNode of tier 1 or lower.
func Domain(key string) string {
	if title := networktopology.Title(key); title != "" {
		return title
	}
	return "value of " + key
}

// Place kinds that people have a name for, by the labels that nodes have for them.
var namedDomains = map[string]string{
	corev1.LabelHostname: "node", corev1.LabelTopologyZone: "zone", corev1.LabelTopologyRegion: "region", corev1.LabelFailureDomainBetaZone: "zone", corev1.LabelFailureDomainBetaRegion: "region",
}

// DomainName is what people call one domain of a node label: node, zone, or else as [Domain] has it.
func DomainName(key string) string { return cmp.Or(namedDomains[key], Domain(key)) }

// CountDomains is a number of domains of a node label: 1 node, 3 zones, 2 values of rack.
func CountDomains[N int | int32](n N, key string) string {
	noun, rest, _ := strings.Cut(DomainName(key), " ")
	return strings.TrimSpace(Count(n, noun) + " " + rest)
}

// Level is what a key is called where it stands for all its domains: rack, or HyperNode of tier 1 or lower.
func Level(key string) string { return cmp.Or(networktopology.Title(key), key) }

// Place is one domain by name: rack=r1, or HyperNode s0.
func Place(key, value string) string {
	if kind, _, derived := strings.Cut(networktopology.Title(key), " "); derived {
		return kind + " " + value
	}
	return key + "=" + value
}

// At is where the nodes of one domain are: at rack=r1, or in HyperNode s0.
func At(key, value string) string {
	if networktopology.Title(key) != "" {
		return "in " + Place(key, value)
	}
	return "at " + Place(key, value)
}
