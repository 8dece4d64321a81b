package view

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/yunikorn"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Placeholders are the pods by which YuniKorn keeps room on nodes for the members of a gang: each gives way to one of them.
func (w *View) Placeholders(g *gang.Gang) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(w.placeholders(g)), func(p *corev1.Pod) bool { return !placement.Holds(p) })
}

// Unreplaced are those of them, and of the ones that have no node yet, that no member is there to replace. YuniKorn starts no member before all its placeholders have a node:
// there are none where they have, or it has started some.
func (w *View) Unreplaced(g *gang.Gang) (all []*corev1.Pod) {
	waits := func(p *corev1.Pod) bool { return p.Spec.NodeName == "" }
	if !g.ByPlaceholders || len(g.Roles) == 0 || slices.ContainsFunc(g.Members, func(m gang.Member) bool { return m.Node() != "" }) || !slices.ContainsFunc(w.placeholders(g), waits) {
		return nil
	}
	members := map[string]int32{} // by task group
	for _, r := range g.Roles {
		members[yunikorn.TaskGroup(&r.Template)] += g.Unlisted[r.Name]
	}
	for _, m := range g.Members {
		if r := g.RoleByName(m.Role); m.Pod != nil {
			members[yunikorn.TaskGroup(m.Pod)]++
		} else if r != nil {
			members[yunikorn.TaskGroup(&r.Template)]++
		}
	}
	for _, p := range w.placeholders(g) {
		if group := yunikorn.TaskGroup(p); members[group] > 0 {
			members[group]--
			continue
		}
		all = append(all, p)
	}
	return all
}

// Replaced are those of them that members are there to replace: YuniKorn makes others for members that are made again.
func (w *View) Replaced(g *gang.Gang) []*corev1.Pod {
	others := w.Unreplaced(g)
	return slices.DeleteFunc(slices.Clone(w.placeholders(g)), func(p *corev1.Pod) bool { return slices.Contains(others, p) })
}

// placeholders are all of a gang that have not ended, whether they have nodes or not.
func (w *View) placeholders(g *gang.Gang) []*corev1.Pod {
	if g.Named.Dialect != gang.YuniKorn {
		return nil
	}
	type placeholders struct{}
	return Once(w, placeholders{}, func() map[gang.Key][]*corev1.Pod {
		all := map[gang.Key][]*corev1.Pod{}
		for _, pod := range w.Snap.Pods {
			if name, ok := yunikorn.Placeholder(pod); ok && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
				key := gang.Key{Dialect: gang.YuniKorn, Namespace: pod.Namespace, Name: name}
				all[key] = append(all[key], pod)
			}
		}
		return all
	})[g.Named]
}

// EventsOfPlaces are the messages about the members of a gang and about the pods that keep room for them, which YuniKorn places first; the latest first.
func (w *View) EventsOfPlaces(g *gang.Gang) []Event {
	all := w.PodEvents(g)
	places := w.placeholders(g)
	if len(places) == 0 {
		return all
	}
	for _, p := range places {
		all = append(all, w.EventsOfPod(p)...)
	}
	slices.SortStableFunc(all, latestFirst)
	return all
}

// holdsFor is what owns the members for which a placeholder of YuniKorn keeps room; ok is false for any other pod, and where no member exists.
func (w *View) holdsFor(pod *corev1.Pod, owners map[gang.Identity]owner) (root owner, ok bool) {
	name, is := yunikorn.Placeholder(pod)
	if !is {
		return owner{}, false
	}
	members := w.referring(gang.YuniKorn)[gang.Key{Dialect: gang.YuniKorn, Namespace: pod.Namespace, Name: name}]
	if len(members) == 0 {
		return owner{}, false
	}
	return rootOf(members[0], owners), true
}
