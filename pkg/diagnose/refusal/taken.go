package refusal

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
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
		if p := v.Pod(g.Meta.Namespace, r.Object); p != nil && (p.DeletionTimestamp == nil || v.Stuck(p)) && !v.Makes(g.Job, p) {
			return p
		}
	case "jobs.batch":
		if j := v.BatchJob(g.Meta.Namespace, r.Object); j != nil && (j.DeletionTimestamp == nil || v.StuckJob(j)) && !v.Makes(g.Job, j) {
			return j
		}
	}
	return nil
}

// Takers are all objects that have the names of members, or of Jobs that would make members, where one is known to have: it is the next that is
// refused then.
func Takers(v *view.View, g *gang.Gang, r Refusal) []metav1.Object {
	var names []string
	for _, other := range Of(v, g) {
		if other.Kind == Taken && other.Resource() == r.Resource() {
			names = append(names, other.Object)
		}
	}
	for _, unmade := range unmade(g) {
		if unmade.Resource() == r.Resource() {
			names = append(names, unmade.Object)
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

// Held are creates that will be refused, as there are others that have the names: events about them expire, and some controllers write none. One is enough of pods, and one of
// Jobs: [Takers] finds the others.
func Held(v *view.View, g *gang.Gang) (all []Refusal) {
	for _, r := range unmade(g) {
		same := func(other Refusal) bool { return other.Resource() == r.Resource() }
		if there(v, g, r) && TakenBy(v, g, r) != nil && !slices.ContainsFunc(all, same) {
			all = append(all, r)
		}
	}
	return all
}

// there reports whether an object has the name that a create would be refused for, also where it is assumed that others are gone.
func there(v *view.View, g *gang.Gang, r Refusal) bool {
	if r.Resource() == "pods" {
		return v.Pod(g.Meta.Namespace, r.Object) != nil
	}
	return v.BatchJob(g.Meta.Namespace, r.Object) != nil
}

// Leaving are the pods that have the names of members and are to be gone in time: those of an earlier job of the name. Members are made after them.
func Leaving(v *view.View, g *gang.Gang) (all []*corev1.Pod) {
	for _, r := range unmade(g) {
		p := v.Pod(g.Meta.Namespace, r.Object)
		if r.Resource() == "pods" && p != nil && p.DeletionTimestamp != nil && !v.Stuck(p) && !v.Makes(g.Job, p) {
			all = append(all, p)
		}
	}
	return all
}

// unmade are the creates of the pods that members lack, or of the Jobs that make these, as they are refused where the name is taken; none of what gets a random name.
func unmade(g *gang.Gang) (all []Refusal) {
	add := func(m gang.Member, resource, name string) {
		raw := fmt.Sprintf("%s %q already exists", resource, name)
		if name != "" && !slices.ContainsFunc(all[max(0, len(all)-2):], func(r Refusal) bool { return r.Raw == raw }) {
			all = append(all, Refusal{Kind: Taken, Role: m.Role, Object: name, Message: raw, Raw: raw})
		}
	}
	for _, m := range g.Members {
		if m.State != gang.Missing {
			continue
		}
		place, ofJobs := gang.RoleIndex{Role: strings.ToLower(m.Role), Index: m.Index}, g.Reader.OwnsPart != nil && !g.Reader.ByLabel
		switch {
		case g.Reader.PodName != nil:
			name := g.PodName(m)
			if ofJobs && g.Reader.OwnsPart(&g.Meta, nil, &metav1.OwnerReference{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Name: name}) { // the launcher of an MPIJob, whose pod has a random name then
				add(m, "jobs.batch", name)
				continue
			}
			add(m, "pods", name)
		case ofJobs && g.Reader.Labels != nil:
			add(m, "jobs.batch", g.Reader.Labels(g.Job, place)[batchv1.JobNameLabel])
		}
	}
	return all
}
