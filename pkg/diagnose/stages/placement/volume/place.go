package volume

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/node"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Elsewhere finds that the data is in one place, the room in another. The room is that of the role on the nodes where the data is.
func Elsewhere(c *stage.Context, f *stage.Finding, r placement.Room) {
	where, key := "its volumes are elsewhere", corev1.LabelTopologyZone
	m := c.Matrices[r.Role.Name]
	if places := boundPlaces(c, r.Role); len(places) > 0 {
		claim := places[0].claim
		where, key = volumesAre(places), places[0].key
		f.Fact("claim", claim.Name).Fact("volume", claim.Spec.VolumeName).Fact("zone", places[0].values).
			See("v1", "PersistentVolumeClaim", claim, ".spec.volumeName")
	} else if nodes := volumeNodes(m); len(nodes) > 0 {
		where, key = "its volumes can only be on "+phrase.Names(nodes), corev1.LabelHostname
	}
	free := map[string]int64{}
	for _, name := range slices.Concat(m.OnlyBlocker(placement.VolumeZone), m.OnlyBlocker(placement.VolumeNode), m.Relaxed(placement.VolumeZone, placement.VolumeNode)) {
		at := "on " + name
		if value, ok := c.Cluster().Node(name).Labels[key]; ok && key != corev1.LabelHostname {
			at = "in " + value
		}
		free[at] += request.Amount(r.Resource, c.Cluster().Free(name)[r.Resource])
	}
	var parts []string
	for _, at := range slices.Sorted(maps.Keys(free)) {
		if free[at] > 0 {
			parts = append(parts, phrase.AmountDown(r.Resource, free[at])+" "+at)
		}
	}
	f.Message = fmt.Sprintf("%s, and what is free is elsewhere: %s", where, phrase.Names(parts))
	if len(parts) == 0 {
		f.Message = fmt.Sprintf("%s: %s", where, phrase.Busy(r, phrase.Allowed(r, "it")))
	}
}

// Here adds to a finding about nodes where the volumes of a role are that they are there.
func Here(c *stage.Context, f *stage.Finding, role placement.Role) {
	places := boundPlaces(c, role)
	if len(places) == 0 {
		return
	}
	claim := places[0].claim
	f.Message += "; " + volumesAre(places)
	f.Fact("claim", claim.Name).Fact("volume", claim.Spec.VolumeName).Fact("zone", places[0].values).See("v1", "PersistentVolumeClaim", claim, ".spec.volumeName")
}

// Where is the clause for where the volumes of a role are; empty where they are anywhere, or there are none.
func Where(c *stage.Context, role placement.Role) string {
	places := boundPlaces(c, role)
	if len(places) == 0 {
		return ""
	}
	return volumesAre(places)
}

// volumeNodes are the nodes where a role can have its volumes, where that is a matter of single nodes: those of local disks.
func volumeNodes(m placement.Matrix) (names []string) {
	if len(m.Rejected(placement.VolumeNode)) == 0 {
		return nil
	}
	for _, row := range m.Rows {
		if !slices.ContainsFunc(row.Violations, func(v placement.Violation) bool { return v.Constraint == placement.VolumeNode }) {
			names = append(names, row.Node)
		}
	}
	return names
}

// claimPlace is where the volume of a claim is, or may be made.
type claimPlace struct {
	claim *corev1.PersistentVolumeClaim
	// key and values are the label of nodes, and its values, that place it; where it takes more than one label, values is empty and key that of single nodes.
	key    string
	values []string
	// text is the place without the label, with its preposition: in z1 or z2, on n1, on nodes with disk!=hdd.
	text string
	// class is the StorageClass that allows a volume to be made only there; empty for a volume that exists.
	class string
}

// is reads like: is in z1; or, of a volume that does not exist yet: is made, by class zonal, in z1.
func (p claimPlace) is() string {
	if p.class == "" {
		return "is " + p.text
	}
	return "is made, by class " + p.class + ", " + p.text
}

// label names the label by which a volume is placed, in brackets with a space before it, where the text of its place does not.
func (p claimPlace) label() string {
	if len(p.values) == 0 || p.key == corev1.LabelHostname {
		return ""
	}
	return " (" + p.key + ")"
}

// boundPlaces are the claims of a role whose volumes are somewhere, or may be made only there.
func boundPlaces(c *stage.Context, role placement.Role) (all []claimPlace) {
	for i := range role.Pod.Spec.Volumes {
		claim := claim(c, placement.VolumeClaimName(role.Pod, &role.Pod.Spec.Volumes[i]))
		if claim == nil {
			continue
		}
		if place, ok := placeOf(c, volumeTerms(volumeOf(c, claim))); ok {
			place.claim = claim
			all = append(all, place)
			continue
		}
		if _, class, _ := classOf(c, claim); claim.Spec.VolumeName == "" && class != nil {
			if place, ok := placeOf(c, classTerms(class)); ok {
				place.claim, place.class = claim, class.Name
				all = append(all, place)
			}
		}
	}
	return all
}

// volumesAre is the clause for where volumes are: the volume of claim data is in za (zone), that of claim ckpt in zb. It names those that are in
// different places.
func volumesAre(places []claimPlace) string {
	text := fmt.Sprintf("the volume of claim %s %s%s", places[0].claim.Name, places[0].is(), places[0].label())
	for _, p := range places[1:min(len(places), stage.MaxReasons)] {
		if p.key != places[0].key || p.text != places[0].text {
			text += fmt.Sprintf(", that of claim %s %s", p.claim.Name, p.text)
		}
	}
	return text
}

// zoneDelimiter is between the zones in the label of a volume that is in several.
const zoneDelimiter = "__"

// volumeTerms are what nodes must have for a volume, any of them: its node affinity, or else its label of old.
func volumeTerms(v *corev1.PersistentVolume) []corev1.NodeSelectorTerm {
	switch {
	case v == nil:
		return nil
	case v.Spec.NodeAffinity != nil && v.Spec.NodeAffinity.Required != nil:
		return v.Spec.NodeAffinity.Required.NodeSelectorTerms
	}
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone} {
		if zones := v.Labels[key]; zones != "" {
			return []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: key, Operator: corev1.NodeSelectorOpIn, Values: strings.Split(zones, zoneDelimiter)},
			}}}
		}
	}
	return nil
}

// classTerms are what nodes must have for a volume of a class to be made there, any of them.
func classTerms(class *storagev1.StorageClass) (terms []corev1.NodeSelectorTerm) {
	for _, allowed := range class.AllowedTopologies {
		var term corev1.NodeSelectorTerm
		for _, e := range allowed.MatchLabelExpressions {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: e.Key, Operator: corev1.NodeSelectorOpIn, Values: e.Values})
		}
		terms = append(terms, term)
	}
	return terms
}

// placeOf is the place that terms describe. What the other requirements of a term imply is left out, as the region of a zone; ok is false without any.
func placeOf(c *stage.Context, terms []corev1.NodeSelectorTerm) (p claimPlace, ok bool) {
	p.key = corev1.LabelTopologyZone
	var texts []string
	single := true
	for _, term := range terms {
		needed := neededOf(c.Cluster().Nodes(), slices.Concat(term.MatchExpressions, term.MatchFields))
		var all []string
		for _, e := range needed {
			all = append(all, placement.Expression(e))
		}
		if len(all) == 0 {
			continue // it selects no node
		}
		texts = append(texts, strings.Join(all, " and "))
		if single = single && len(needed) == 1 && needed[0].Operator == corev1.NodeSelectorOpIn && (len(texts) == 1 || needed[0].Key == p.key); single {
			p.key, p.values = needed[0].Key, append(p.values, slices.DeleteFunc(slices.Clone(needed[0].Values), func(v string) bool { return slices.Contains(p.values, v) })...)
		}
	}
	switch {
	case len(texts) == 0:
		return p, false
	case !single:
		p.key, p.values = corev1.LabelHostname, nil
		p.text = "on nodes with " + phrase.Shorten(phrase.Or(texts), maxPlace)
	case p.key == corev1.LabelHostname || p.key == nameField:
		p.key, p.text = corev1.LabelHostname, "on "+phrase.Or(p.values)
	default:
		p.text = "in " + phrase.Or(p.values)
	}
	return p, true
}

const (
	// maxPlace is how many bytes of the text of a place that takes several labels are shown.
	maxPlace = 200
	// nameField is the field of nodes that terms may select by.
	nameField = "metadata.name"
)

// neededOf are the requirements of a term without those that the others imply on the nodes that there are; at least one of them.
func neededOf(nodes []*corev1.Node, term []corev1.NodeSelectorRequirement) []corev1.NodeSelectorRequirement {
	matching := func(some []corev1.NodeSelectorRequirement) (count int) {
		var t corev1.NodeSelectorTerm
		for _, e := range some {
			if e.Key == nameField {
				t.MatchFields = append(t.MatchFields, e)
			} else {
				t.MatchExpressions = append(t.MatchExpressions, e)
			}
		}
		selector, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{t}})
		if err != nil {
			return -1
		}
		for _, n := range nodes {
			if selector.Match(n) {
				count++
			}
		}
		return count
	}
	needed, all := slices.Clone(term), matching(term)
	for i := 0; i < len(needed) && len(needed) > 1; {
		if rest := slices.Delete(slices.Clone(needed), i, i+1); matching(rest) == all {
			needed = rest
			continue
		}
		i++
	}
	return needed
}

// Ceiling is the sentence for a volume that is where too few nodes are.
func Ceiling(c *stage.Context, role placement.Role, r placement.Room, fitted string) string {
	places := boundPlaces(c, role)
	switch {
	case len(places) == 0:
		return fmt.Sprintf("the volumes that it mounts keep it from the room that there is: %s fit with them", fitted)
	case len(r.Nodes) == 0:
		return fmt.Sprintf("%s, and there is no node that takes a %s%s", volumesAre(places), phrase.Noun(r), wherePlaced(c, role, places))
	case request.IsDevice(r.Resource) && r.LargestTotal == 0:
		return fmt.Sprintf("%s, and no node there has %s%s", volumesAre(places), phrase.Resource(r.Resource), wherePlaced(c, role, places))
	}
	return fmt.Sprintf("%s, and the nodes there have room for %s", volumesAre(places), fitted)
}

// wherePlaced is where those nodes are, by the label that places its volume, that nothing but that keeps a role off, as the end of a sentence. It is empty where there are none, and where
// volumes are in several places.
func wherePlaced(c *stage.Context, role placement.Role, places []claimPlace) string {
	key, best := places[0].key, c.Best()
	if slices.ContainsFunc(places, func(p claimPlace) bool { return p.text != places[0].text }) {
		return ""
	}
	m, device := c.MatrixOn(best, role), request.Device(request.Of(role.Pod))
	var values []string
	for _, name := range slices.Concat(m.OnlyBlocker(placement.VolumeZone), m.OnlyBlocker(placement.VolumeNode)) {
		n := best.Node(name)
		if value := n.Labels[key]; value != "" && (device == "" || node.Offers(n, device)) {
			values = append(values, value)
		}
	}
	if len(values) == 0 {
		return ""
	}
	slices.Sort(values)
	at := "in "
	if key == corev1.LabelHostname {
		at = "on "
	}
	return "; what would take one is " + at + phrase.Names(slices.Compact(values))
}
