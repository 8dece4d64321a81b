package topology

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement"
)

// ApartCeiling is the sentence for members that keep each other, or that others keep, off nodes or domains of a label, on the cluster at its best.
func ApartCeiling(c *stage.Context, r placement.Room) string {
	a, ok := c.Best().Apart(c.Request.Gang, r.Role, r.NodeNames())
	if !ok || !a.Short() {
		return fmt.Sprintf("pod anti-affinity%s keeps %s from nodes with room", repulsion(r.Role.Pod), phrase.Members(r))
	}
	var there []string
	if a.Key != corev1.LabelHostname && len(a.Domains) > 0 {
		there = append(there, phrase.Names(a.Domains))
	}
	if r.PerMember > 0 && len(a.Roles) == len(r.Alike) {
		there = append(there, fmt.Sprintf("%s are there, %s requested", phrase.AmountDown(r.Resource, r.Free), phrase.Up(r.Resource, r.Requested)))
	}
	numbers, taken := "", ""
	if len(there) > 0 {
		numbers = fmt.Sprintf(" (%s)", strings.Join(there, "; "))
	}
	if len(c.Request.Bound) > 0 {
		taken = ", besides those of its members that have a node,"
	}
	of := membersApart(r, a)
	return fmt.Sprintf("pod anti-affinity requires %s%s one for each %s%s, and there %s %d%s", phrase.CountDomains(a.Members, a.Key), cmp.Or(taken, ","), phrase.Noun(of), phrase.Kinds(of),
		phrase.Verb(len(a.Domains), "is", "are"), len(a.Domains), numbers)
}

// maxSelector is how much of a selector is repeated, in bytes.
const maxSelector = 128

// repulsion names the pods that a pod keeps away from, as the end of a noun: to pods with app=web (same zone). It is empty for a pod that others keep
// away from, and for one with several rules: any may be in the way.
func repulsion(pod *corev1.Pod) string {
	if !placement.KeepsApart(pod) || len(pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 1 {
		return ""
	}
	term := pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
	return fmt.Sprintf(" to pods with %s (same %s)", phrase.Shorten(metav1.FormatLabelSelector(term.LabelSelector), maxSelector), phrase.DomainName(term.TopologyKey))
}

// Apart is the sentence for members of which each needs a node or a domain of its own, and finds none; empty where there are enough of these.
func Apart(c *stage.Context, r placement.Room) string {
	a, ok := c.Cluster().Apart(c.Request.Gang, r.Role, r.NodeNames())
	if !ok || !a.Short() {
		return ""
	}
	of := membersApart(r, a)
	who := phrase.Members(of)
	if len(a.Roles) == len(r.Alike) {
		who = phrase.Wants(of)
	}
	if a.Key == corev1.LabelHostname {
		return fmt.Sprintf("needs %s, each on a node of its own by pod anti-affinity%s; %s are free but as %s", who, phrase.Kinds(of), phrase.AmountDown(r.Resource, r.Free), phrase.Gaps(r))
	}
	return fmt.Sprintf("needs %s, each in a %s of its own by pod anti-affinity%s; %d of %s %s room for one: %s", who, phrase.DomainName(a.Key), phrase.Kinds(of),
		len(a.Domains), phrase.CountDomains(a.All, a.Key), phrase.Verb(len(a.Domains), "has", "have"), phrase.Names(a.Domains))
}

// membersApart is a room for the members that keep apart, which may be of more roles.
func membersApart(r placement.Room, a placement.Apart) placement.Room {
	r.Alike, r.Members = a.Roles, a.Members
	return r
}
