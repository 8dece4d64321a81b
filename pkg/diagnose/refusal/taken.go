package refusal

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
)

// TakenBy is the pod, or the Job that would make pods, which has the name that a create was refused for and is none of the gang's. It is nil where there is no such
// object: a controller also creates what it has made itself and does not see yet, and an object that had the name may have gone, or is about to. It is
// looked for in the cluster as it is, also where another one is assumed.
func TakenBy(v *view.View, g *gang.Gang, r Refusal) metav1.Object {
	v = v.Present()
	switch r.Resource() {
	case "pods":
		if p := v.Pod(g.Meta.Namespace, r.Object); p != nil && (p.DeletionTimestamp == nil || view.Stuck(p, v.Now)) && !v.Makes(g.Job, p) {
			return p
		}
	case "jobs.batch":
		if j := v.BatchJob(g.Meta.Namespace, r.Object); j != nil && j.DeletionTimestamp == nil && !v.Makes(g.Job, j) {
			return j
		}
	}
	return nil
}

// Takers are all objects that have the names of members, or of Jobs that would make members, where one is known by a refusal to have: it is the next that is
// refused then. Of Jobs they are those that were refused.
func Takers(v *view.View, g *gang.Gang, r Refusal) []metav1.Object {
	var names []string
	for _, other := range Of(v, g) {
		if other.Kind == Taken && other.Resource() == r.Resource() {
			names = append(names, other.Object)
		}
	}
	if r.Resource() == "pods" && g.Reader.PodName != nil {
		for _, m := range g.Members {
			if m.State == gang.Missing {
				names = append(names, g.Reader.PodName(g.Meta.Name, gang.RoleIndex{Role: strings.ToLower(m.Role), Index: m.Index}))
			}
		}
	}
	slices.Sort(names)
	var all []metav1.Object
	for _, name := range slices.Compact(names) {
		r.Object = name
		if taker := TakenBy(v, g, r); taker != nil {
			all = append(all, taker)
		}
	}
	return all
}
